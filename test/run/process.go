package run

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// patience is how long a test waits for something that has to happen, before it fails.
	patience = time.Minute
	// outputWithin is how long the output of a process that has ended is waited for.
	outputWithin = 2 * time.Second
)

// T is what is used of a testing.TB: a script has something like it, too.
type T interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Process is a command that runs.
type Process struct {
	t      T
	cmd    *exec.Cmd
	stdout *output
	stderr *output
	exited chan struct{} // it has been reaped
	code   int           // set before exited is closed
}

// Options say how a process is started.
type Options struct {
	Path   string   // the program; conch where it is empty
	Args   []string // without the program's name
	Env    []string // added to the test's environment, from which what acts on conch was taken out
	Dir    string
	Stdin  io.Reader
	Extra  []*os.File // further files that the process inherits, from 3 on
	Groups bool       // a process group of its own, to be signalled as a whole
}

// Start starts conch with args. env is added to the environment of the test, without its own CONCH_ and
// ETCDCTL_ variables. The process is killed when the test ends.
func Start(t T, env []string, args ...string) *Process {
	t.Helper()
	return StartWith(t, Options{Env: env, Args: args})
}

// StartWith is Start with more to say.
func StartWith(t T, o Options) *Process {
	t.Helper()
	if o.Path == "" {
		o.Path = Build(t).Conch
	}
	cmd := exec.Command(o.Path, o.Args...)
	cmd.Env, cmd.Dir = append(clean(os.Environ()), o.Env...), o.Dir
	cmd.Stdin, cmd.ExtraFiles = o.Stdin, o.Extra
	if o.Groups {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	p := &Process{t: t, cmd: cmd, exited: make(chan struct{})}
	var files [2]*os.File
	for i, to := range []**output{&p.stdout, &p.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		*to, files[i] = newOutput(r), w
	}
	cmd.Stdout, cmd.Stderr = files[0], files[1]
	err := cmd.Start()
	files[0].Close()
	files[1].Close()
	if err != nil {
		t.Fatal(err)
	}
	go p.reap()
	t.Cleanup(func() { p.Kill(); <-p.exited; p.stdout.stop(); p.stderr.stop() })
	return p
}

func (p *Process) reap() {
	defer close(p.exited)
	err := p.cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		status := exit.Sys().(syscall.WaitStatus)
		if p.code = status.ExitStatus(); status.Signaled() {
			p.code = 128 + int(status.Signal())
		}
	default:
		p.code = -1 // it could not be waited for, or its stdin could not be copied
	}
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal to the process. One that has ended gets none.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill is Signal with SIGKILL.
func (p *Process) Kill() { p.Signal(syscall.SIGKILL) }

// Stop stops the process, and returns when each of its threads stands still.
func (p *Process) Stop() {
	p.t.Helper()
	p.Signal(syscall.SIGSTOP)
	for end := time.Now().Add(patience); !frozen(p.Pid()); time.Sleep(time.Millisecond) { // its parent would hear of the first one
		if time.Now().After(end) {
			p.t.Fatalf("process %d does not stop", p.Pid())
		}
	}
}

// Exited is closed when the process has ended and was reaped.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Code waits for the end of the process and returns its exit code, 128+n where signal n ended it.
func (p *Process) Code() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.t.Fatalf("process %d does not end; stderr: %s", p.Pid(), p.Stderr())
	}
	return p.code
}

// Wait is Code, and waits for the end of the output as well.
func (p *Process) Wait() int {
	p.t.Helper()
	p.Code()
	late := time.NewTimer(outputWithin)
	defer late.Stop()
	for _, o := range []*output{p.stdout, p.stderr} {
		select {
		case <-o.ended:
		case <-late.C:
			return p.code
		}
	}
	return p.code
}

// Stdout and Stderr are what came so far.
func (p *Process) Stdout() string { return p.stdout.text() }

// Stderr is what came on stderr so far.
func (p *Process) Stderr() string { return p.stderr.text() }

// WaitLog waits until a line of stderr holds want, and returns the first such line.
func (p *Process) WaitLog(want string) string {
	p.t.Helper()
	line, ok := p.stderr.await(want)
	if !ok {
		p.t.Fatalf("no line with %q; stderr: %s", want, p.Stderr())
	}
	return line
}

// WaitOut waits until a line of stdout holds want, and returns the first such line.
func (p *Process) WaitOut(want string) string {
	p.t.Helper()
	line, ok := p.stdout.await(want)
	if !ok {
		p.t.Fatalf("no line with %q; stdout: %s; stderr: %s", want, p.Stdout(), p.Stderr())
	}
	return line
}

// output collects what a process writes.
type output struct {
	r     *os.File
	ended chan struct{}

	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{} // closed and replaced when more has come
}

func newOutput(r *os.File) *output {
	o := &output{r: r, ended: make(chan struct{}), changed: make(chan struct{})}
	go o.collect()
	return o
}

func (o *output) collect() {
	defer close(o.ended)
	chunk := make([]byte, 32<<10)
	for {
		n, err := o.r.Read(chunk)
		o.mu.Lock()
		o.buf.Write(chunk[:n])
		close(o.changed)
		o.changed = make(chan struct{})
		o.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// await waits for a whole line that holds want, until the output ends.
func (o *output) await(want string) (string, bool) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		o.mu.Lock()
		text, changed := o.buf.String(), o.changed
		o.mu.Unlock()
		for line := range strings.Lines(text) {
			if strings.HasSuffix(line, "\n") && strings.Contains(line, want) {
				return strings.TrimSuffix(line, "\n"), true
			}
		}
		select {
		case <-changed:
		case <-o.ended:
			if !strings.Contains(o.text(), want) {
				return "", false
			}
		case <-late.C:
			return "", false
		}
	}
}

// stop ends the collecting, whoever else has the other end.
func (o *output) stop() {
	_ = o.r.Close()
	<-o.ended
}
