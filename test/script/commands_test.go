package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/test/run"
)

// patience is how long a script waits for something that has to happen.
const patience = time.Minute

type command = func(ts *testscript.TestScript, neg bool, args []string)

func (w *world) commands() map[string]command {
	all := map[string]struct {
		least int // arguments
		do    func(ts *testscript.TestScript, args []string)
	}{
		"exits":    {2, exits},
		"spawn":    {2, spawn},
		"signal":   {2, signal},
		"ends":     {2, ends},
		"waitlog":  {2, waitLog},
		"waitout":  {2, waitOut},
		"waitfile": {1, waitFile},
		"messages": {1, messages},
		"lines":    {2, lines},
		"waitkey":  {2, w.waitKey},
		"holder":   {3, w.holder},
		"revoke":   {2, w.revoke},
		"delete":   {2, w.del},
		"unclean":  {1, w.unclean},
		"request":  {2, w.request},
		"foreign":  {2, w.foreign},
		"host":     {2, w.host},
		"nohost":   {1, w.noHost},
		"losehost": {1, w.loseHost},
		"puthost":  {2, w.putHost},
		"putkey":   {2, w.putKey},
		"putjob":   {2, w.putJob},
	}
	commands := map[string]command{}
	for name, c := range all {
		commands[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < c.least {
				ts.Fatalf("%s: want at least %d arguments and no !", name, c.least)
			}
			c.do(ts, args)
		}
	}
	return commands
}

// exits runs a program that has to exit with a code.
func exits(ts *testscript.TestScript, args []string) {
	want := atoi(ts, args[0])
	got := 0
	err := ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		status := exit.Sys().(syscall.WaitStatus)
		if got = status.ExitStatus(); status.Signaled() {
			got = 128 + int(status.Signal())
		}
	default:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// spawnedKey is where the processes of a script are kept.
type spawnedKey struct{}

func processes(ts *testscript.TestScript) map[string]*run.Process {
	return ts.Value(spawnedKey{}).(map[string]*run.Process)
}

func process(ts *testscript.TestScript, name string) *run.Process {
	p := processes(ts)[name]
	if p == nil {
		ts.Fatalf("nothing was spawned as %s", name)
	}
	return p
}

// scriptT lets a script be the test of a process.
type scriptT struct{ *testscript.TestScript }

func (scriptT) Helper()             {}
func (s scriptT) Fatal(args ...any) { s.Fatalf("%s", fmt.Sprint(args...)) }
func (s scriptT) Cleanup(f func())  { s.Defer(f) }

func spawn(ts *testscript.TestScript, args []string) {
	path := args[1]
	for dir := range strings.SplitSeq(ts.Getenv("PATH"), string(os.PathListSeparator)) {
		if info, err := os.Stat(dir + "/" + path); err == nil && !info.IsDir() && !strings.Contains(path, "/") {
			path = dir + "/" + path
			break
		}
	}
	env := []string{"PATH=" + ts.Getenv("PATH")}
	for _, name := range inherited {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	processes(ts)[args[0]] = run.StartWith(scriptT{ts}, run.Options{Path: path, Args: args[2:], Dir: ts.MkAbs("."), Env: env})
}

// inherited are the variables that what is spawned has from its script.
var inherited = []string{
	"CONCH_ENDPOINTS", "CONCH_TTL", "CONCH_CACERT", "CONCH_CERT", "CONCH_KEY", "CONCH_USER", "CONCH_PASSWORD", "CONCH_PASSWORD_FILE",
}

var signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT,
	"USR1": syscall.SIGUSR1, "PIPE": syscall.SIGPIPE, "KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
}

func signal(ts *testscript.TestScript, args []string) {
	s, known := signals[args[1]]
	if !known {
		ts.Fatalf("unknown signal %s", args[1])
	}
	process(ts, args[0]).Signal(s)
}

func ends(ts *testscript.TestScript, args []string) {
	p := process(ts, args[0])
	code := p.Wait()
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".out"), []byte(p.Stdout()), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".err"), []byte(p.Stderr()), 0o644))
	if code != atoi(ts, args[1]) {
		ts.Fatalf("exit code %d, want %s; stderr: %s", code, args[1], p.Stderr())
	}
}

func waitLog(ts *testscript.TestScript, args []string) { process(ts, args[0]).WaitLog(args[1]) }

func waitOut(ts *testscript.TestScript, args []string) { process(ts, args[0]).WaitOut(args[1]) }

func waitFile(ts *testscript.TestScript, args []string) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(2 * time.Millisecond) // a file that appears is no event that every system tells of
	}
	ts.Fatalf("%s does not appear", args[0])
}

func messages(ts *testscript.TestScript, args []string) {
	text := ts.ReadFile(args[0])
	if got := words(text); !slices.Equal(got, args[1:]) {
		ts.Fatalf("got %q, want %q", got, args[1:])
	}
}

func lines(ts *testscript.TestScript, args []string) {
	text := ts.ReadFile(args[0])
	if got := strings.Count(text, "\n"); got != atoi(ts, args[1]) {
		ts.Fatalf("%d lines, want %s: %q", got, args[1], text)
	}
}

// below is the range of the candidates for an office, or of what an area has of a name, as in sema/NAME.
func below(what string) string {
	if strings.Contains(what, "/") {
		return hold.Root + what + "/"
	}
	return hold.ElectRange(what)
}

// waitKey waits until as many keys as asked for stand below an office, or elsewhere.
func (w *world) waitKey(ts *testscript.TestScript, args []string) {
	want := int64(atoi(ts, args[1]))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		got, err := w.client.Get(ctx, below(args[0]), clientv3.WithPrefix(), clientv3.WithCountOnly())
		ts.Check(err)
		if got.Count == want {
			return
		}
		watch, stop := context.WithCancel(ctx)
		<-w.client.Watch(watch, below(args[0]), clientv3.WithPrefix(), clientv3.WithRev(got.Header.Revision+1))
		stop()
		if ctx.Err() != nil {
			ts.Fatalf("%d keys below %s, want %d", got.Count, args[0], want)
		}
	}
}

// nth is the nth key of an office, or elsewhere, in the order of the queue.
func (w *world) nth(ts *testscript.TestScript, what, n string) (key, value string, lease clientv3.LeaseID) {
	got, err := w.client.Get(context.Background(), below(what), clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	ts.Check(err)
	i := atoi(ts, n)
	if i >= len(got.Kvs) {
		ts.Fatalf("%d keys below %s", len(got.Kvs), what)
	}
	return string(got.Kvs[i].Key), string(got.Kvs[i].Value), clientv3.LeaseID(got.Kvs[i].Lease)
}

func (w *world) holder(ts *testscript.TestScript, args []string) {
	_, value, _ := w.nth(ts, args[0], args[1])
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(value+"\n"), 0o644))
}

func (w *world) revoke(ts *testscript.TestScript, args []string) {
	_, _, lease := w.nth(ts, args[0], args[1])
	_, err := w.client.Revoke(context.Background(), lease)
	ts.Check(err)
}

func (w *world) del(ts *testscript.TestScript, args []string) {
	key, _, _ := w.nth(ts, args[0], args[1])
	_, err := w.client.Delete(context.Background(), key)
	ts.Check(err)
}

// unclean leaves what a hold leaves whose host died with nobody waiting.
func (w *world) unclean(ts *testscript.TestScript, args []string) {
	office, _ := hold.OfficeKeys(args[0])
	open := office.String()
	if strings.Contains(args[0], "/") { // of a slot
		open = hold.AreaRange(hold.AreaOpen) + args[0]
	}
	record := `{"lease":"7b","ttl":2,"term_ms":700,"at":"2026-01-01T00:00:00Z",` +
		`"holder":{"host":"gone","pid":9,"started":"2026-01-01T00:00:00Z"}}`
	_, err := w.client.Put(context.Background(), open, record)
	ts.Check(err)
}

// request asks the nth of an office, or of a semaphore, to leave; now, or as if it were at a time.
func (w *world) request(ts *testscript.TestScript, args []string) {
	_, _, lease := w.nth(ts, args[0], args[1])
	kind, name, found := strings.Cut(args[0], "/")
	if !found {
		kind, name = hold.KindElect, args[0]
	}
	asks := hold.Eviction{Host: "desk", PID: 7, At: time.Now()}
	if len(args) > 2 {
		at, err := time.Parse(time.RFC3339, args[2])
		ts.Check(err)
		asks.At = at
	}
	_, err := w.client.Put(context.Background(), hold.EvictKey(kind, name, int64(lease)).String(), asks.Encode(), clientv3.WithLease(lease))
	ts.Check(err)
}

// foreign has a client that is none of ours queue for an office.
func (w *world) foreign(ts *testscript.TestScript, args []string) {
	lease, err := w.client.Grant(context.Background(), 600)
	ts.Check(err)
	_, err = w.client.Put(context.Background(), hold.ElectKey(args[0], int64(lease.ID)).String(), args[1], clientv3.WithLease(lease.ID))
	ts.Check(err)
}

// awaitHost waits until the key of a host is there, or is not, and gives its value.
func (w *world) awaitHost(ts *testscript.TestScript, uuid string, there bool) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		got, err := w.client.Get(ctx, coord.HostsPrefix+uuid)
		ts.Check(err)
		switch {
		case len(got.Kvs) == 1 && there:
			return got.Kvs[0].Value
		case len(got.Kvs) == 0 && !there:
			return nil
		}
		watch, stop := context.WithCancel(ctx)
		<-w.client.Watch(watch, coord.HostsPrefix+uuid, clientv3.WithRev(got.Header.Revision+1))
		stop()
	}
}

func (w *world) host(ts *testscript.TestScript, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), append(w.awaitHost(ts, args[0], true), '\n'), 0o644))
}

func (w *world) noHost(ts *testscript.TestScript, args []string) { w.awaitHost(ts, args[0], false) }

func (w *world) loseHost(ts *testscript.TestScript, args []string) {
	_, err := w.client.Delete(context.Background(), coord.HostsPrefix+args[0])
	ts.Check(err)
}

func atoi(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

// putJob writes a job as it stands in etcd. It is gone when the script is.
func (w *world) putJob(ts *testscript.TestScript, args []string) {
	_, err := w.client.Put(context.Background(), record.JobKey(args[0]), args[1])
	ts.Check(err)
	ts.Defer(func() { _, _ = w.client.Delete(context.Background(), record.JobKey(args[0])) })
}

// putHost puts the key of a host. It is gone when the script is.
func (w *world) putHost(ts *testscript.TestScript, args []string) {
	_, err := w.client.Put(context.Background(), coord.HostsPrefix+args[0], args[1])
	ts.Check(err)
	ts.Defer(func() { _, _ = w.client.Delete(context.Background(), coord.HostsPrefix+args[0]) })
}

// putKey puts any key. It is gone when the script is.
func (w *world) putKey(ts *testscript.TestScript, args []string) {
	_, err := w.client.Put(context.Background(), args[0], args[1])
	ts.Check(err)
	ts.Defer(func() { _, _ = w.client.Delete(context.Background(), args[0]) })
}
