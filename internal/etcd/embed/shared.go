package embed

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/connectivity"
)

// ErrSilent is returned when a member holds the state directory but answered nobody until the context ended.
var ErrSilent = errors.New("embed: the shared member does not answer")

// Shared is the member that all processes of one user share.
type Shared struct {
	// Dir is the state directory: see DefaultDir.
	Dir string
	// Self is the program to start as the member: one that calls Role first. Usually os.Executable().
	Self string
	// Grace is how long the member stays when its last client has left. Default one minute.
	Grace time.Duration
}

// EnsureMember is Ensure of the Shared with that directory and program.
func EnsureMember(ctx context.Context, stateDir, self string) (endpoint string, started bool, err error) {
	return Shared{Dir: stateDir, Self: self}.Ensure(ctx)
}

// Ensure gives the endpoint of the shared member and starts it where there is none; started says that this
// call did so. It waits for a member that is just starting or ending. When ctx ends first the error wraps
// ErrSilent.
func (s Shared) Ensure(ctx context.Context) (endpoint string, started bool, err error) {
	err = s.attempt(ctx, func(lock *os.File) error {
		started = true
		endpoint, err = s.start(ctx, lock)
		return err
	}, func(found string) error {
		endpoint = found
		return nil
	})
	return endpoint, started, err
}

// Serve runs the shared member in this process until ctx ends, or keeps the one that runs already alive
// and takes its place if it ends. serving is told the endpoint each time, and whether the member is ours.
func (s Shared) Serve(ctx context.Context, serving func(endpoint string, ours bool)) error {
	for {
		err := s.attempt(ctx, func(lock *os.File) error {
			defer lock.Close()
			log, err := state(s.Dir).log()
			if err != nil {
				return err
			}
			defer log.Close()
			return run(ctx, state(s.Dir), 0, log, func(endpoint string) error {
				serving(endpoint, true)
				return nil
			})
		}, func(endpoint string) error {
			return attend(ctx, endpoint, func() { serving(endpoint, false) })
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
	}
}

// attempt looks for a member and takes the lock, in turn, until one of the two succeeds; it calls found or
// locked accordingly. The lock's file belongs to locked.
func (s Shared) attempt(ctx context.Context, locked func(*os.File) error, found func(endpoint string) error) error {
	st := state(s.Dir)
	if err := st.create(); err != nil {
		return err
	}
	for {
		// A record that nothing answers to is of the past, or of a member that ends.
		r, known := st.read()
		if known && s.answers(ctx, r.Endpoint) {
			return found(r.Endpoint)
		}
		lock, err := st.lock()
		if err == nil {
			return locked(lock)
		}
		if !errors.Is(err, errLocked) {
			return err
		}

		// Somebody starts or ends a member right now. Neither says when it is done to those who are not
		// its parent, so this looks again: a start takes some hundred milliseconds.
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait for member (pid %d, log %s): %w: %w", r.PID, st.path("log"), ErrSilent, context.Cause(ctx))
		}
	}
}

func (s Shared) answers(ctx context.Context, endpoint string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return Probe(ctx, endpoint) == nil
}

// start starts the member process, hands the lock over, and waits for its word.
func (s Shared) start(ctx context.Context, lock *os.File) (string, error) {
	defer lock.Close()
	st := state(s.Dir)
	log, err := st.log()
	if err != nil {
		return "", err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("start member process: %w", err)
	}
	defer r.Close()

	// The member is a grandchild: its parent ends at once, so that it is nobody's child. A caller that
	// sweeps up its descendants, as conch's guard does, never sees it; its own session keeps the
	// terminal's signals away. It is told nothing of our environment but where to write.
	grace := cmp.Or(s.Grace, time.Minute)
	cmd := exec.Command(s.Self, roleArg, roleDetach, s.Dir, grace.String())
	cmd.Dir, cmd.Env = s.Dir, memberEnv()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock, w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Run()
	w.Close()
	if err != nil {
		return "", fmt.Errorf("start member process: %w (log: %s)", err, st.path("log"))
	}

	// One line, or the end of the pipe when it died.
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Now()) })
	defer stop()
	line, err := bufio.NewReader(r).ReadString('\n')
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch {
	case err == nil && word == "ready":
		return rest, nil
	case err == nil:
		return "", fmt.Errorf("start member process: %s (log: %s)", rest, st.path("log"))
	case ctx.Err() != nil:
		return "", fmt.Errorf("wait for member (log %s): %w: %w", st.path("log"), ErrSilent, context.Cause(ctx))
	default:
		return "", fmt.Errorf("start member process: it ended without a word (log: %s)", st.path("log"))
	}
}

// memberEnv is the environment of the member process: no secrets, nothing that acts on etcd or conch.
func memberEnv() []string {
	var env []string
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// attend keeps a connection to the member at endpoint, which is what keeps it from ending, until the
// connection breaks or ctx ends. connected is called once it stands.
func attend(ctx context.Context, endpoint string, connected func()) error {
	conn, err := dial(endpoint)
	if err != nil {
		return fmt.Errorf("attend member at %s: %w", endpoint, err)
	}
	defer conn.Close()
	conn.Connect()
	was := connectivity.Idle
	for conn.WaitForStateChange(ctx, was) {
		now := conn.GetState()
		switch {
		case now == connectivity.Ready:
			connected()
		case was == connectivity.Ready, now == connectivity.TransientFailure, now == connectivity.Shutdown:
			return nil
		}
		was = now
	}
	return nil
}
