package wire

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// ours is an election of this package, settling or not.
func ours(t *testing.T, cli *clientv3.Client, key string, settle bool) *coord.Election {
	t.Helper()
	o := coord.ElectionOptions{Key: key}
	if settle {
		o.Settle = coord.SettleOptions{Open: "/open" + key, Last: "/last" + key}
	}
	e, err := coord.NewElection(t.Context(), cli, o)
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	return e
}

// theirs is an election of etcd's own package.
func theirs(t *testing.T, cli *clientv3.Client, key string) *concurrency.Election {
	t.Helper()
	s, err := concurrency.NewSession(cli, concurrency.WithTTL(10))
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return concurrency.NewElection(s, key)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// queued waits until n candidates stand under key.
func queued(t *testing.T, cli *clientv3.Client, key string, n int) {
	t.Helper()
	watch := cli.Watch(t.Context(), key+"/", clientv3.WithPrefix())
	for {
		got, err := cli.Get(t.Context(), key+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		must(t, err)
		if got.Count == int64(n) {
			return
		}
		<-watch
	}
}

func TestAForeignCandidateQueuesBehindOursAndIsWoken(t *testing.T) {
	t.Parallel()
	for _, settle := range []bool{false, true} {
		cli, key := etcdtest.Shared(t).Client(t), etcdtest.Prefix(t)+"e"
		a, b := ours(t, cli, key, settle), theirs(t, cli, key)
		must(t, a.Campaign(t.Context(), "ours"))
		got, err := b.Leader(t.Context())
		must(t, err)
		if string(got.Kvs[0].Value) != "ours" || got.Kvs[0].CreateRevision != int64(a.Term().Token()) {
			t.Errorf("the foreign client sees %v", got.Kvs)
		}
		won := make(chan error, 1)
		go func() { won <- b.Campaign(t.Context(), "theirs") }()
		queued(t, cli, key, 2)
		select {
		case err := <-won:
			t.Fatal("two lead", err)
		default:
		}
		must(t, a.Resign(t.Context()))
		must(t, <-won)
		leader, err := a.Leader(t.Context())
		if err != nil || leader.Identity != "theirs" || leader.Token != uint64(b.Rev()) {
			t.Errorf("ours sees %+v, %v", leader, err)
		}
		must(t, b.Resign(t.Context()))
	}
}

func TestOursQueuesBehindAForeignLeaderAlsoAfterItsProclamation(t *testing.T) {
	t.Parallel()
	for _, settle := range []bool{false, true} {
		cli, key := etcdtest.Shared(t).Client(t), etcdtest.Prefix(t)+"e"
		a, b := theirs(t, cli, key), ours(t, cli, key, settle)
		must(t, a.Campaign(t.Context(), "theirs"))
		if won, err := b.TryCampaign(t.Context(), "ours"); won || err != nil {
			t.Fatal(won, err)
		}
		done := make(chan error, 1)
		go func() { done <- b.Campaign(t.Context(), "ours") }()
		queued(t, cli, key, 2)
		must(t, a.Proclaim(t.Context(), "more"))
		leader, err := b.Leader(t.Context())
		if err != nil || leader.Identity != "more" {
			t.Errorf("ours sees %+v, %v", leader, err)
		}
		must(t, a.Resign(t.Context()))
		must(t, <-done)
		must(t, b.Resign(t.Context()))
	}
}

func TestForeignObserversSeeOursAndOursSeeThem(t *testing.T) {
	t.Parallel()
	cli, key := etcdtest.Shared(t).Client(t), etcdtest.Prefix(t)+"e"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, b := ours(t, cli, key, true), theirs(t, cli, key)
	foreign, own := b.Observe(ctx), a.Observe(ctx)
	must(t, a.Campaign(t.Context(), "ours"))
	if got := <-foreign; string(got.Kvs[0].Value) != "ours" {
		t.Errorf("the foreign observer sees %v", got.Kvs)
	}
	if got := <-own; got != "ours" {
		t.Error(got)
	}
	must(t, a.Resign(t.Context()))
	must(t, b.Campaign(t.Context(), "theirs"))
	if got := <-own; got != "theirs" {
		t.Error(got)
	}
	must(t, b.Resign(t.Context()))
}

func TestAForeignResumeThatTakesOurKeyIsALoss(t *testing.T) {
	t.Parallel()
	cli, key := etcdtest.Shared(t).Client(t), etcdtest.Prefix(t)+"e"
	a := ours(t, cli, key, false)
	term, err := a.CampaignTerm(t.Context(), "ours")
	must(t, err)
	s, err := concurrency.NewSession(cli)
	must(t, err)
	defer s.Close()
	// It puts its value, on its own lease, under our key: the create revision stays.
	thief := concurrency.ResumeElection(s, key, term.Keys().Key, int64(term.Token()))
	must(t, thief.Proclaim(t.Context(), "stolen"))
	<-term.Lost()
	if err := term.Check(); !errors.Is(err, coord.ErrTermLost) || !errors.Is(err, coord.ErrKeyReplaced) {
		t.Error(err)
	}
	must(t, thief.Resign(t.Context()))
}

// etcdctl starts etcdctl elect and returns its output, line by line, and a stop that ends it as Ctrl-C does.
func etcdctl(t *testing.T, endpoint string, args ...string) (*bufio.Scanner, func()) {
	t.Helper()
	program, err := filepath.Abs("../../bin/etcdctl")
	must(t, err)
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: make test builds it", err)
	}
	cmd := exec.Command(program, append([]string{"--endpoints", endpoint, "elect"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			_ = cmd.Process.Signal(syscall.SIGINT)
			_ = cmd.Wait()
		}
	}
	t.Cleanup(stop)
	return bufio.NewScanner(out), stop
}

func TestEtcdctlElect(t *testing.T) {
	t.Parallel()
	server := etcdtest.Shared(t)
	cli, key := server.Client(t), etcdtest.Prefix(t)+"e"
	a := ours(t, cli, key, true)
	must(t, a.Campaign(t.Context(), "ours"))

	// It queues behind ours, and leads after it.
	lines, stop := etcdctl(t, server.Endpoint(), key, "theirs")
	queued(t, cli, key, 2)
	must(t, a.Resign(t.Context()))
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), key+"/") {
		t.Errorf("etcdctl says %q", lines.Text())
	}
	leader, err := a.Leader(t.Context())
	if err != nil || leader.Identity != "theirs" || leader.Key != lines.Text() {
		t.Errorf("ours sees %+v, %v", leader, err)
	}

	// Ours queues behind it, and leads after it; it sees that.
	done := make(chan error, 1)
	go func() { done <- a.Campaign(t.Context(), "ours again") }()
	queued(t, cli, key, 2)
	stop()
	must(t, <-done)
	listen, _ := etcdctl(t, server.Endpoint(), "--listen", key)
	for range 2 {
		if !listen.Scan() {
			t.Fatal("etcdctl --listen ended")
		}
	}
	if listen.Text() != "ours again" {
		t.Errorf("etcdctl --listen says %q", listen.Text())
	}
}
