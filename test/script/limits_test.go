package script

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

// What the child gets is larger than what the wrapper got, by its token and its lease: there is a length at which the kernel
// starts the one and not the other.
func TestArgumentsThatAreTooLongForTheChildOnly(t *testing.T) {
	t.Parallel()
	conch, office, endpoint := run.Build(t).Conch, etcdtest.Office(t), etcdtest.Shared(t).Endpoint()
	const one = 100_000 // one argument may have 128 KiB
	start := func(ttl string, length int) *exec.Cmd {
		cmd := exec.Command(conch, "elect", office, "--", "/bin/true")
		for ; length > one; length -= one {
			cmd.Args = append(cmd.Args, strings.Repeat("a", one))
		}
		cmd.Args = append(cmd.Args, strings.Repeat("a", length))
		cmd.Env = []string{"CONCH_ENDPOINTS=" + endpoint, "CONCH_TTL=" + ttl}
		return cmd
	}

	// The longest that the wrapper itself can have. A bad setting keeps it from doing anything with it.
	tooLong := func(length int) bool {
		err := start("00s", length).Run()
		var exit *exec.ExitError
		if !errors.Is(err, syscall.E2BIG) && (!errors.As(err, &exit) || exit.ExitCode() != 64) {
			t.Fatal(err)
		}
		return errors.Is(err, syscall.E2BIG)
	}
	least, most := 1, 8<<20 // the kernel never takes more than 6 MiB
	for most-least > 1 {
		if middle := (least + most) / 2; tooLong(middle) {
			most = middle
		} else {
			least = middle
		}
	}

	cmd := start("60s", least)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 126 {
		t.Errorf("%v, want exit code 126", err)
	}
	if !strings.HasSuffix(stderr.String(), "conch: command not executable: exec /bin/true: argument list too long\n") {
		t.Errorf("stderr: %.2000s", stderr.String())
	}
	left(t, office, endpoint)
}

// left asserts that nothing of a hold is left: a newcomer has the office at once and settles nothing.
func left(t *testing.T, office, endpoint string) {
	t.Helper()
	p := run.Start(t, []string{"CONCH_ENDPOINTS=" + endpoint}, "elect", office, "--nonblock", "--", "true")
	if code := p.Wait(); code != 0 || strings.Contains(p.Stderr(), "settling") {
		t.Errorf("the office is not free: %d; %s", code, p.Stderr())
	}
}

// A child that writes to a pipe that is full waits for its reader. The wrapper does not: it renews, and ends the child when
// it is told to.
func TestAFullPipeBehindStdoutHoldsUpTheChildOnly(t *testing.T) {
	t.Parallel()
	office, endpoint := etcdtest.Office(t), etcdtest.Shared(t).Endpoint()
	w := fullPipe(t)
	p := run.StartWith(t, run.Options{
		Path: "/bin/sh", Args: []string{"-c", `exec "$0" elect "$1" --ttl 2s -- sh -c "echo x" >&3`, run.Build(t).Conch, office},
		Env: []string{"CONCH_ENDPOINTS=" + endpoint}, Extra: []*os.File{w},
	})
	p.WaitLog("msg=child-start")
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(); code != 143 {
		t.Errorf("code %d; %s", code, p.Stderr())
	}
	if got := words(p.Stderr()); got[len(got)-1] != "released" {
		t.Errorf("not released: %q", got)
	}
	left(t, office, endpoint)
}

// fullPipe is the end of a pipe into which nothing goes any more, in blocking mode as any program would have it. Nobody reads
// the other end while the test runs.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	fd := int(w.Fd()) // once: each call makes the file blocking again
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := syscall.Write(fd, make([]byte, 4096)); err != nil {
			break // full
		}
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	return w
}
