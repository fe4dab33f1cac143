package guard

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// patience is how long a test waits for what has to come. No test passes by it.
const patience = 60 * time.Second

func sweepSoon(c *Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.Sweep(ctx)
}

// wrapper is a wrapper process as its test sees it.
type wrapper struct {
	t      *testing.T
	cmd    *exec.Cmd
	orders io.WriteCloser
	from   chan answer
	seen   []Event     // heard, not yet asked for
	log    chan string // what children and release program write, line by line; closed when none of them,
	// nor guard nor wrapper, is left
	guard int // pid
}

// begin starts a wrapper and waits for its guard. Settings are variables of playWrapper.
func begin(t *testing.T, settings ...string) *wrapper {
	t.Helper()
	w := &wrapper{t: t, from: make(chan answer, 4096), log: make(chan string, 65536)}
	w.cmd = exec.Command("/proc/self/exe")
	w.cmd.Env = partEnv(append(settings, "GUARD_TEST_PART=wrapper")...)
	w.launch()
	w.guard = w.event(KindReady, "").Pid
	return w
}

// launch starts cmd with its pipes.
func (w *wrapper) launch() {
	w.t.Helper()
	var err error
	if w.cmd.Stdin == nil {
		w.orders, err = w.cmd.StdinPipe()
		w.must(err)
	}
	out, outW, err := os.Pipe()
	w.must(err)
	log, logW, err := os.Pipe()
	w.must(err)
	w.cmd.Stdout, w.cmd.Stderr = outW, logW
	w.must(w.cmd.Start())
	w.must(outW.Close())
	w.must(logW.Close())
	read := make(chan struct{}, 2)
	go func() {
		decoder := json.NewDecoder(out)
		for {
			var a answer
			if decoder.Decode(&a) != nil {
				break
			}
			w.from <- a
		}
		close(w.from)
		read <- struct{}{}
	}()
	go func() {
		for scan := bufio.NewScanner(log); scan.Scan(); {
			w.log <- scan.Text()
		}
		close(w.log)
		read <- struct{}{}
	}()
	w.t.Cleanup(func() {
		_ = w.cmd.Process.Signal(syscall.SIGCONT)
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
		// Whoever escaped a test that failed dies of its next word.
		_ = out.Close()
		_ = log.Close()
		<-read
		<-read
	})
}

func (w *wrapper) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// tell gives an order.
func (w *wrapper) tell(o order) {
	w.t.Helper()
	line, err := json.Marshal(o)
	w.must(err)
	_, err = w.orders.Write(append(line, '\n'))
	w.must(err)
}

func (w *wrapper) send(q Request) {
	w.t.Helper()
	w.tell(order{Do: "send", Request: &q})
}

// do gives an order and waits until it is done.
func (w *wrapper) do(what string) string {
	w.t.Helper()
	w.tell(order{Do: what})
	for {
		a := w.next()
		if a.Event != nil {
			w.seen = append(w.seen, *a.Event)
		} else if a.Did == what {
			return a.Err
		}
	}
}

func (w *wrapper) next() answer {
	w.t.Helper()
	select {
	case a, ok := <-w.from:
		if !ok {
			_ = w.cmd.Wait()
			w.t.Fatalf("the wrapper has ended: %v, %q", w.cmd.ProcessState, w.rest())
		}
		return a
	case <-time.After(patience):
		w.t.Fatal("the wrapper is silent")
	}
	panic("unreachable")
}

// event waits for the next event of a run, which has to be of this kind; other runs' are kept.
func (w *wrapper) event(kind Kind, run string) Event {
	w.t.Helper()
	e := w.anyEvent(run)
	for e.Kind == KindStuck && kind != KindStuck {
		e = w.anyEvent(run) // a busy machine, and no more
	}
	if e.Kind != kind {
		w.t.Fatalf("got %+v, want %s of run %q", e, kind, run)
	}
	return e
}

// anyEvent waits for the next event of a run.
func (w *wrapper) anyEvent(run string) Event {
	w.t.Helper()
	for {
		at := slices.IndexFunc(w.seen, func(e Event) bool { return e.Run == run })
		if at >= 0 {
			e := w.seen[at]
			w.seen = slices.Delete(w.seen, at, at+1)
			return e
		}
		if a := w.next(); a.Event != nil {
			w.seen = append(w.seen, *a.Event)
		}
	}
}

// line waits for the next line of the log.
func (w *wrapper) line() string {
	w.t.Helper()
	select {
	case s, ok := <-w.log:
		if !ok {
			w.t.Fatal("everybody has ended")
		}
		return s
	case <-time.After(patience):
		w.t.Fatal("the log is silent")
	}
	panic("unreachable")
}

// until waits for a line that starts with a word, and returns what follows it.
func (w *wrapper) until(word string) string {
	w.t.Helper()
	for {
		if rest, ok := strings.CutPrefix(w.line(), word); ok {
			return strings.TrimSpace(rest)
		}
	}
}

// rest is all that is still written until nobody is left who could write: wrapper, guard, children, release program.
func (w *wrapper) rest() []string {
	w.t.Helper()
	var all []string
	late := time.After(patience)
	for {
		select {
		case s, ok := <-w.log:
			if !ok {
				return all
			}
			all = append(all, s)
		case <-late:
			w.t.Fatalf("somebody is still there after %q", all)
		}
	}
}

// signal sends a signal to the wrapper.
func (w *wrapper) signal(sig syscall.Signal) {
	w.t.Helper()
	w.must(w.cmd.Process.Signal(sig))
}

// bye ends the wrapper in order, and everybody with it.
func (w *wrapper) bye() []string {
	w.t.Helper()
	if err := w.do("close"); err != "" {
		w.t.Fatal(err)
	}
	return w.rest()
}

// sh is the start of a shell script.
func sh(run, script string, args ...string) Request {
	return Request{Op: OpStart, Run: run, Spec: &Spec{
		Path: "/bin/sh",
		Argv: append([]string{"sh", "-c", script, "sh"}, args...),
		Env:  []string{"PATH=" + os.Getenv("PATH")},
	}}
}

// exists reports whether there is a process, were it a zombie.
func exists(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && syscall.Kill(n, 0) != syscall.ESRCH
}

// in is a pair of deadlines from now.
func in(term, kill time.Duration) hold.Deadlines {
	return hold.Deadlines{Term: now() + term, Kill: now() + kill}
}
