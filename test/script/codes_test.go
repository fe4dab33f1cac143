package script

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

// each does something for every number, some of them at a time.
func each(numbers []int, do func(n int)) {
	queue := make(chan int, len(numbers))
	for _, n := range numbers {
		queue <- n
	}
	close(queue)
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for n := range queue {
				do(n)
			}
		})
	}
	work.Wait()
}

// ended runs sh with a script as the child, and holds the exit code and the status file against what they have to be.
func ended(t *testing.T, dir, script, outcome string, code int) {
	file := filepath.Join(dir, fmt.Sprintf("%s-%d", outcome, code))
	p := run.StartWith(t, run.Options{
		Args: []string{"elect", etcdtest.Office(t), "--quiet", "--status-file", file, "--", "sh", "-c", script}, Dir: dir,
		Env: []string{"CONCH_ENDPOINTS=" + etcdtest.Shared(t).Endpoint(), "CONCH_TTL=60s"},
	})
	if got := p.Wait(); got != code || p.Stderr() != "" {
		t.Errorf("%s: code %d, want %d; stderr: %s", script, got, code, p.Stderr())
	}
	status, err := os.ReadFile(file)
	if want := fmt.Sprintf(`{"outcome":%q,"code":%d,`, outcome, code); err != nil || !strings.HasPrefix(string(status), want) {
		t.Errorf("%s: status file %s, %v; want %s", script, status, err, want)
	}
}

// Every code of a child comes back, our own among them, and the status file says that it is the child's.
func TestEveryExitCodeComesBack(t *testing.T) {
	t.Parallel()
	var codes []int
	for n := range 256 {
		codes = append(codes, n)
	}
	dir := t.TempDir()
	run.Build(t)
	each(codes, func(n int) { ended(t, dir, fmt.Sprintf("exit %d", n), "child-exit", n) })
}

// Every signal that ends a process is told, also by one that leaves a core.
func TestEverySignalOfAChildIsTold(t *testing.T) {
	t.Parallel()
	harmless := []syscall.Signal{
		syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG, syscall.SIGWINCH, // ignored by default
		syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, // they stop it
	}
	var signals []int
	for n := 1; n <= 64; n++ {
		if n == 32 || n == 33 {
			continue // the C library's own, for its threads: no program sends them, and what a shell makes of them varies
		}
		if !slices.Contains(harmless, syscall.Signal(n)) {
			signals = append(signals, n)
		}
	}
	dir := t.TempDir()
	run.Build(t)
	each(signals, func(n int) {
		ended(t, dir, fmt.Sprintf("ulimit -c unlimited 2>/dev/null; kill -%d $$", n), "child-signal", 128+n)
	})
}
