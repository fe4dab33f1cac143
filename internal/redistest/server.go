package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// limit bounds every wait for something that takes a moment. It is reached only when that never comes.
const limit = time.Minute

// Options of a server.
type Options struct {
	// Durable has every write on the disk before it is answered (appendfsync always), so that a restart loses nothing.
	Durable bool
}

// Server is a redis-server over all its runs. Its methods are for the test's own goroutine, unless they say otherwise.
type Server struct {
	t    testing.TB
	dir  string
	args []string
	run  *process // nil when it was killed
}

// process is one run.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	out    bytes.Buffer // complete when it has exited
}

// Need gives the path of redis-server, or skips the test where there is none.
func Need(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("redistest: %v: CI has to have it", err)
	}
	if err != nil {
		t.Skip("redis-server is not installed: apt-get install redis-server")
	}
	return path
}

// Start starts a server and returns when it serves.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	path := Need(t)
	dir, err := os.MkdirTemp("", "redistest") // short, as the path of a socket has to be
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	s := &Server{t: t, dir: dir, args: []string{path, "--port", "0", "--unixsocket", filepath.Join(dir, "s"), "--dir", dir, "--save", "", "--loglevel", "warning"}}
	if o.Durable {
		s.args = append(s.args, "--appendonly", "yes", "--appendfsync", "always")
	}
	t.Cleanup(func() {
		s.Kill()
		os.RemoveAll(dir)
	})
	s.Restart()
	return s
}

// Socket is where it listens.
func (s *Server) Socket() string { return filepath.Join(s.dir, "s") }

// Pid is the process id of the present run.
func (s *Server) Pid() int { return s.run.cmd.Process.Pid }

// Client gives a client that is closed when t ends. Where it is not told otherwise, a context bounds its calls, and it
// sends nothing twice.
func (s *Server) Client(t testing.TB, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Network: "unix", Addr: s.Socket(), ContextTimeoutEnabled: true, MaxRetries: -1}
	for _, c := range change {
		c(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Stop freezes the server.
func (s *Server) Stop() { s.signal(syscall.SIGSTOP) }

// Cont lets it go on.
func (s *Server) Cont() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.run.cmd.Process.Signal(sig); err != nil {
		s.t.Errorf("redistest: %v: %v", sig, err)
	}
}

// Kill kills the server, also one that is frozen, and returns when it is gone.
func (s *Server) Kill() {
	if s.run != nil {
		_ = s.run.cmd.Process.Kill() // already ended: fine
		<-s.run.exited
		s.run = nil
	}
}

// Restart kills the server if it runs, starts it on its data, and returns when it serves.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	run, err := start(s.args)
	if err != nil {
		s.t.Fatalf("redistest: start: %v", err)
	}
	s.run = run
	if err := s.ready(); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
}

// start forks from a thread that lives as long as the server does: see the package comment.
func start(args []string) (*process, error) {
	p := &process{cmd: exec.Command(args[0], args[1:]...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = &p.out, &p.out, dieWithParent()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // it was killed, or says why in out
			close(p.exited)
		}
	}()
	return p, <-started
}

// ready waits until the server answers. It says nothing by itself that could be waited for.
func (s *Server) ready() error {
	for deadline := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) { // nobody tells when it does
		err := s.ping()
		select {
		case <-s.run.exited:
			return fmt.Errorf("it ended: %s", bytes.TrimSpace(s.run.out.Bytes()))
		default:
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// ping asks the server whether it serves: one that reads its data says no.
func (s *Server) ping() error {
	c, err := net.Dial("unix", s.Socket())
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := io.WriteString(c, "PING\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && answer != "+PONG\r\n" {
		err = fmt.Errorf("it answers %q", answer)
	}
	return err
}
