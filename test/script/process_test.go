package script

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/test/run"
)

func TestASignalEndsAWaiterThatEtcdHasForgotten(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	el, err := coord.NewElection(t.Context(), etcdtest.Shared(t).Client(t), coord.ElectionOptions{Key: hold.ElectPrefix(office), TTL: 60})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = el.Close() })
	if err := el.Campaign(t.Context(), "somebody else"); err != nil {
		t.Fatal(err)
	}
	for name, silence := range map[string]func(*etcdtest.Proxy){
		"silent": (*etcdtest.Proxy).Blackhole, "gone": (*etcdtest.Proxy).Cut, "deaf": (*etcdtest.Proxy).DropReplies,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := etcdtest.NewProxy(t, etcdtest.Shared(t).Endpoint())
			p := run.Start(t, []string{"CONCH_ENDPOINTS=" + proxy.Addr(), "CONCH_TTL=60s"}, "elect", office, "--", "true")
			p.WaitLog("msg=waiting")
			silence(proxy)
			p.Signal(syscall.SIGTERM)
			if code := p.Wait(); code != 143 {
				t.Errorf("code %d; %s", code, p.Stderr())
			}
		})
	}
}

// TestAFullPipeBehindStderrHoldsNothingUp has nobody read stderr, and the pipe is full before the first line.
func TestAFullPipeBehindStderrHoldsNothingUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code := filepath.Join(dir, "code")
	// The shell hands the pipe on as fd 3.
	w := fullPipe(t)
	p := run.StartWith(t, run.Options{
		Path: "/bin/sh", Args: []string{"-c", `"$0" elect "$1" -- sh -c "exit 5" 2>&3; echo $? >"$2"`, run.Build(t).Conch, etcdtest.Office(t), code},
		Env:   []string{"CONCH_ENDPOINTS=" + etcdtest.Shared(t).Endpoint()},
		Extra: []*os.File{w},
	})
	if c := p.Wait(); c != 0 {
		t.Fatalf("the shell ended with %d; %s", c, p.Stderr())
	}
	text, err := os.ReadFile(code)
	if err != nil || string(text) != "5\n" {
		t.Errorf("code %q, %v", text, err)
	}
}

// TestConchDevNeedsNothing names no endpoint. Where something answers at the default one, that is used: hence the
// office of its own.
func TestConchDevNeedsNothing(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	dev := run.BuildDev(t).Dev
	state := t.TempDir()
	for range 2 {
		p := run.StartWith(t, run.Options{
			Path: dev, Args: []string{"elect", office, "--quiet", "--", "sh", "-c", "echo I lead with token $CONCH_REV"},
			Env: []string{"XDG_STATE_HOME=" + state},
		})
		p.WaitOut("I lead with token ")
		if code := p.Wait(); code != 0 {
			t.Fatalf("code %d; %s", code, p.Stderr())
		}
	}
}

// heldBySomebody is an office that somebody else holds, in the way of any client of etcd.
func heldBySomebody(t *testing.T) (office string, el *coord.Election) {
	t.Helper()
	office = etcdtest.Office(t)
	el, err := coord.NewElection(t.Context(), etcdtest.Shared(t).Client(t), coord.ElectionOptions{Key: hold.ElectPrefix(office)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = el.Close() })
	if err := el.Campaign(t.Context(), "somebody else"); err != nil {
		t.Fatal(err)
	}
	return office, el
}

// TestAWaiterOutlastsAnEtcdThatIsAway has etcd away for longer than the waiter's session lives and than it dials.
func TestAWaiterOutlastsAnEtcdThatIsAway(t *testing.T) {
	t.Parallel()
	office, el := heldBySomebody(t)
	proxy := etcdtest.NewProxy(t, etcdtest.Shared(t).Endpoint())
	p := run.Start(t, []string{"CONCH_ENDPOINTS=" + proxy.Addr()}, "elect", office, "--ttl", "5s", "--kill-after", "1s",
		"--dial-timeout", "300ms", "--", "echo", "ours") // what it wins is to outlast a machine that is busy
	p.WaitLog("msg=waiting")
	proxy.Cut()
	p.WaitLog("etcd unreachable")
	proxy.Revive()
	if err := el.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := p.Wait(); code != 0 || p.Stdout() != "ours\n" {
		t.Errorf("code %d, %q; %s", code, p.Stdout(), p.Stderr())
	}
}

// TestATermWhileWaitingIsNotHeldUpByAFrozenGuard: a guard that has nothing to end is not waited for.
func TestATermWhileWaitingIsNotHeldUpByAFrozenGuard(t *testing.T) {
	t.Parallel()
	office, _ := heldBySomebody(t)
	p := run.Start(t, []string{"CONCH_ENDPOINTS=" + etcdtest.Shared(t).Endpoint()}, "elect", office, "--", "true")
	p.WaitLog("msg=waiting")
	guard := p.Guard()
	if err := syscall.Kill(guard, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(); code != 143 {
		t.Errorf("code %d; %s", code, p.Stderr())
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if run.Alive(guard) {
		t.Error("the guard is left")
	}
}

// TestWhatComesToAWrapperIsTakenAway: a shell leaves a child, which has one of its own, and becomes conch. When the former
// ends, the latter comes to conch, which has nothing to do with it. Red when conch does not reap: a zombie stays.
func TestWhatComesToAWrapperIsTakenAway(t *testing.T) {
	t.Parallel()
	// Each of the two lives until its pipe is closed.
	var ends []*os.File
	var lives []func()
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		ends, lives = append(ends, r), append(lives, func() { w.Close() })
	}
	p := run.StartWith(t, run.Options{
		Path: "/bin/sh",
		Args: []string{"-c", `sh -c 'cat <&3 & echo "orphan $!"; read line <&4' &
			exec "$0" elect "$1" -- sh -c 'echo up; exec sleep 600'`, run.Build(t).Conch, etcdtest.Office(t)},
		Env:   []string{"CONCH_ENDPOINTS=" + etcdtest.Shared(t).Endpoint(), "CONCH_TTL=60s"},
		Extra: ends,
	})
	orphan, err := strconv.Atoi(strings.TrimPrefix(p.WaitOut("orphan "), "orphan "))
	if err != nil {
		t.Fatal(err)
	}
	p.WaitOut("up")
	// becomes polls: the kernel has no event for either.
	becomes := func(parent int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); run.Parent(orphan) != parent; time.Sleep(2 * time.Millisecond) { // a poll of /proc
			if time.Now().After(end) {
				t.Fatalf("the parent of the orphan is %d, want %d; it is alive: %v", run.Parent(orphan), parent, run.Alive(orphan))
			}
		}
	}
	lives[1]()
	becomes(p.Pid())
	lives[0]()
	becomes(0)
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(); code != 143 {
		t.Errorf("code %d; %s", code, p.Stderr())
	}
}
