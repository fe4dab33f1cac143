package etcdtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/go-coord/coord/internal/etcd/embed"
)

// forker forks from one thread that lives until close: the kernel sends a child's parent-death signal when
// the thread that forked it ends, not when the process does.
type forker struct {
	jobs chan func()
	done chan struct{}
}

func newForker() *forker {
	f := &forker{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		// Never unlocked: the thread ends with the goroutine, after the children that are bound to it.
		runtime.LockOSThread()
		for job := range f.jobs {
			job()
		}
	}()
	return f
}

func (f *forker) start(cmd *exec.Cmd) error {
	result := make(chan error)
	f.jobs <- func() { result <- cmd.Start() }
	return <-result
}

// close ends the thread. Every child must have been reaped.
func (f *forker) close() {
	close(f.jobs)
	<-f.done
}

// process is one run of a member process.
type process struct {
	cmd    *exec.Cmd
	up     chan struct{} // closed when its listeners are open
	ready  chan struct{} // closed when it has a leader
	exited chan struct{} // closed when it has been reaped
	stderr *lockedBuffer
}

// startProcess starts this test binary as a member and returns when it listens.
func startProcess(f *forker, dir string, c embed.Config) (*process, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &process{up: make(chan struct{}), ready: make(chan struct{}), exited: make(chan struct{}), stderr: &lockedBuffer{}}

	// A test binary whose TestMain does not know of Role runs no test and ends.
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(self, "-test.run=^$", c.Name)
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), roleEnv+"="+string(config))
	p.cmd.ExtraFiles = []*os.File{w}
	p.cmd.Stderr = p.stderr
	p.cmd.SysProcAttr = dieWithParent()
	err = f.start(p.cmd)
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	go p.listen(r)
	go func() {
		_ = p.cmd.Wait() // how it ended is known: it was killed, or says why on stderr
		close(p.exited)
	}()

	select {
	case <-p.up:
		return p, nil
	case <-p.exited:
		return nil, p.failure()
	case <-time.After(limit):
		p.kill()
		return nil, errors.New("member process does not listen")
	}
}

// listen turns the words of the process into closed channels, until it ends.
func (p *process) listen(r *os.File) {
	defer r.Close()
	words := bufio.NewScanner(r)
	for words.Scan() {
		switch words.Text() {
		case "up":
			close(p.up)
		case "ready":
			close(p.ready)
		}
	}
}

// failure says why a process ended that should not have.
func (p *process) failure() error {
	said := p.stderr.String()
	if said == "" {
		said = "it said nothing; does TestMain call etcdtest.Main?"
	}
	return fmt.Errorf("member process ended (%v): %s", p.cmd.ProcessState, said)
}

// kill kills the process, also one that is stopped, and waits until it is reaped.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // already ended: fine
	<-p.exited
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop freezes the process and returns when each of its threads stands still.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	// The signal is taken a moment later, and only the parent's wait tells, which os/exec is busy with.
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		stopped, err := frozen(p.cmd.Process.Pid)
		if stopped || err != nil {
			return err
		}
	}
	return errors.New("process does not stop")
}

// cont lets a stopped process go on.
func (p *process) cont() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// lockedBuffer keeps the end of what a process says on stderr.
type lockedBuffer struct {
	mu  sync.Mutex
	buf []byte
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	if keep := 8 << 10; len(b.buf) > keep {
		b.buf = append(b.buf[:0], b.buf[len(b.buf)-keep:]...)
	}
	return len(p), nil
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(bytes.TrimSpace(b.buf))
}
