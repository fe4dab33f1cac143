package embed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"
)

// The hidden command line of the member process: roleArg, then one of the two roles, the state directory
// and the grace. Descriptor 3 carries the lock, 4 is where the one line of outcome goes.
const (
	roleArg    = "__member"
	roleDetach = "detach" // start the member and end, so that it has no parent
	roleMember = "member"

	fdLock, fdReady = 3, 4
)

// Role plays the part that Shared.Ensure started this program for, and returns its exit code. ok is false
// when args (os.Args) ask for no such part: then the program is on its own. Call it before anything else.
func Role(args []string) (code int, ok bool) {
	if len(args) < 2 || args[1] != roleArg {
		return 0, false
	}
	if err := role(args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "conch-dev: %v\n", err)
		return 1, true
	}
	return 0, true
}

func role(args []string) error {
	if len(args) != 3 {
		return errors.New("run member: this command is for conch-dev's own use")
	}
	grace, err := time.ParseDuration(args[2])
	if err != nil {
		return fmt.Errorf("run member: %w", err)
	}
	lock, ready := os.NewFile(fdLock, "lock"), os.NewFile(fdReady, "ready")
	switch args[0] {
	case roleDetach:
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("run member: %w", err)
		}
		return detach(self, args[1:], lock, ready)
	case roleMember:
		return member(state(args[1]), grace, lock, ready)
	}
	return fmt.Errorf("run member: no role %q", args[0])
}

// detach starts the member and does not wait for it.
func detach(self string, args []string, lock, ready *os.File) error {
	cmd := exec.Command(self, append([]string{roleArg, roleMember}, args...)...)
	// A deleted program (go run removes what it built) is still found by its process.
	if _, err := os.Stat(self); err != nil {
		cmd.Path = "/proc/self/exe"
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{lock, ready}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start member process: %w", err)
	}
	return nil
}

// member runs the member until it is idle or told to end, and says on ready how the start went. The lock
// goes with the process; a file that nobody refers to any more would be closed by its finalizer.
func member(st state, grace time.Duration, lock, ready *os.File) error {
	defer lock.Close()
	unix.CloseOnExec(fdLock)
	unix.CloseOnExec(fdReady)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	signal.Ignore(syscall.SIGHUP)

	err := run(ctx, st, grace, os.Stderr, func(endpoint string) error {
		_, err := fmt.Fprintf(ready, "ready %s\n", endpoint)
		ready.Close()
		// A starter that has gone does not need to know.
		if errors.Is(err, syscall.EPIPE) {
			return nil
		}
		return err
	})
	if err != nil {
		// The starter shows this line; it may be past listening.
		_, _ = fmt.Fprintf(ready, "error %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return err
}

// run is the life of the shared member, for whoever holds the lock of st. serving is called with its
// endpoint once it serves. It ends when nobody was connected for grace (zero: never), or with ctx.
func run(ctx context.Context, st state, grace time.Duration, log io.Writer, serving func(endpoint string) error) error {
	if err := st.claim(); err != nil {
		return err
	}
	moved, err := st.begin()
	if err != nil {
		return err
	}
	if moved {
		fmt.Fprintf(log, "conch-dev: the store did not open twice: moved to %s, starting an empty one\n", st.path("data.broken"))
	}

	// Start, and let others know where.
	attached := newClients(grace)
	defer attached.end()
	m, err := open(ctx, st, log, attached)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := st.ready(); err != nil {
		return err
	}
	if err := st.write(record{PID: os.Getpid(), Endpoint: m.Endpoint(), Started: time.Now().UTC()}); err != nil {
		return err
	}
	defer os.Remove(st.path("member.json"))
	if err := serving(m.Endpoint()); err != nil {
		return err
	}

	// Live.
	select {
	case <-attached.idle:
		return nil
	case <-ctx.Done():
		attached.end()
		return nil
	case err := <-m.Failed():
		return fmt.Errorf("run member: %w", err)
	}
}

// open starts the member at the directory's socket, or at a loopback port where the path is too long.
func open(ctx context.Context, st state, log io.Writer, attached *clients) (*Member, error) {
	c := Config{
		Dir:    st.path("data"),
		Listen: "unix:" + st.path("etcd.sock"),
		Logger: complaints(log),
		Server: attached.options(),
	}
	m, err := Start(ctx, c)
	if errors.Is(err, ErrLongPath) {
		c.Listen = ""
		m, err = Start(ctx, c)
	}
	return m, err
}

// complaints is a logger for what etcd says at level error and above.
func complaints(w io.Writer) *zap.Logger {
	enc := zap.NewProductionEncoderConfig()
	enc.EncodeTime = zapcore.RFC3339TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(enc), zapcore.AddSync(w), zap.ErrorLevel))
}
