package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

// contained runs a command as the first process of a pid namespace with a /proc of its own, as a container does. Who is
// not root is made root of a user namespace for it.
func contained(t *testing.T, args ...string) *run.Process {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatalf("%v: install util-linux", err)
	}
	how := []string{"--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Getuid() != 0 {
		how = append(how, "--user", "--map-root-user")
	}
	return run.StartWith(t, run.Options{
		Path: unshare, Args: append(how, args...), Groups: true,
		Env: []string{"CONCH_ENDPOINTS=" + etcdtest.Shared(t).Endpoint(), "CONCH_TTL=60s"},
	})
}

// The wrapper as process 1 of a container: it passes on codes and signals, and takes away what nobody else does.
func TestTheFirstProcessOfAContainer(t *testing.T) {
	conch, office := run.Build(t).Conch, etcdtest.Office(t)
	first := contained(t, conch, "elect", office, "--", "sh", "-c", "exit 7")
	if code := first.Wait(); code != 7 {
		t.Errorf("code %d; %s", code, first.Stderr())
	}

	// A stop, as a container's runtime does it: a signal for process 1. The kernel drops those that have no handler there.
	ready := filepath.Join(t.TempDir(), "ready")
	second := contained(t, conch, "elect", office, "--", "sh", "-c", `
		(setsid sh -c 'exit 0' &) # an orphan that ends
		(setsid sleep 600 &)      # one that does not
		echo $PPID >"$1"; exec sleep 600`, "sh", ready)
	second.WaitLog("msg=child-start")
	wrapper := childOf(t, second.Pid())
	if err := syscall.Kill(wrapper, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := second.Wait(); code != 143 {
		t.Errorf("code %d; %s", code, second.Stderr())
	}
	if !strings.Contains(second.Stderr(), "msg=released") {
		t.Errorf("not released: %s", second.Stderr())
	}
}

// Who comes to process 1 is taken away when it ends, also if it came to the shell that became the wrapper. Red without
// reaping, and red when children from before are left to nobody.
func TestTheFirstProcessOfAContainerReaps(t *testing.T) {
	conch, office := run.Build(t).Conch, etcdtest.Office(t)
	// The shell that becomes the wrapper leaves a child, whose own child is orphaned to process 1 and ends.
	p := contained(t, "sh", "-c", `
		(sh -c 'while [ ! -e "$1/go" ]; do sleep 0.01; done; exit 0' sh "$2" &
		 echo $! >"$2/orphan") 
		exec "$1" elect `+office+` -- sh -c '
			touch "$1/go"
			while [ -e /proc/$(cat "$1/orphan") ]; do sleep 0.01; done' sh "$2"`, "sh", conch, t.TempDir())
	if code := p.Wait(); code != 0 {
		t.Errorf("code %d; %s", code, p.Stderr())
	}
}

// childOf is the one child of a process.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	children := run.Children(parent)
	if len(children) != 1 {
		t.Fatalf("children %v of %d", children, parent)
	}
	return children[0]
}
