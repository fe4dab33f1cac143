package cli

import (
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"github.com/go-coord/coord/internal/hold/supervise"
)

// Env is everything that a command sees of the process it runs in. A command is a function of a context
// and an Env to an exit code, so that a test can run it without a process.
type Env struct {
	Name    string   // the program as it was called: argv[0]
	Program string   // what it calls itself in what it says; empty: conch, whatever link it was called by
	Args    []string // what follows it
	Environ []string // "NAME=value"
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer // has to be safe to write to at any time: see Sink

	// LookupSRV asks for DNS records. Default: the resolver of the system.
	LookupSRV LookupSRV

	// Signals begins to listen for what may reach a wrapper, until stop is called.
	Signals func() (signals <-chan os.Signal, stop func())
	// Interrupted asks that this process, when all is done, be killed by SIGINT instead of exiting with 130, which is the
	// same to whoever looks at $? only.
	Interrupted func()

	// Notify tells the service manager (sd_notify(3)); nil where there is none. It may block.
	Notify func(state string)
	// Watchdog is how often it wants to hear WATCHDOG=1; 0: never.
	Watchdog time.Duration
}

// Process is the Env of this process, and its ending, to be asked for by the caller when all is done.
func Process() (Env, *Ending) {
	sink := NewSink(ownStderr())
	end := &Ending{stderr: sink}
	env := Env{
		Name: os.Args[0], Args: os.Args[1:], Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: sink,
		Signals: supervise.Signals, Interrupted: end.interrupt,
	}
	if os.Getenv("NOTIFY_SOCKET") != "" {
		env.Notify = func(state string) { _, _ = daemon.SdNotify(false, state) } // whom could one tell that it failed
		env.Watchdog, _ = daemon.SdWatchdogEnabled(false)                        // a value that is none means no watchdog
	}
	return env, end
}

// ownStderr is standard error under another number. A write to a pipe that nobody reads any more is an error there; on
// numbers 1 and 2 Go ends the process with SIGPIPE, and the exit code would be lost with it.
func ownStderr() *os.File {
	fd, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.Stderr // it is closed, or there is no room: nothing better is to be had
	}
	return os.NewFile(uintptr(fd), os.Stderr.Name())
}

// Lookup finds a variable. One that is set and empty counts as not set. Of several the first counts, as
// for the Go runtime.
func (e Env) Lookup(name string) (value string, ok bool) {
	for _, v := range e.Environ {
		if n, value, found := strings.Cut(v, "="); found && n == name {
			return value, value != ""
		}
	}
	return "", false
}

// LogFormat is the log format where no flag says so: that of the variable, as far as it makes sense.
func (e Env) LogFormat() string {
	if format, _ := e.Lookup("CONCH_LOG_FORMAT"); format == logJSON {
		return format
	}
	return "text"
}

// private are the variables that are for conch alone, and that no child inherits: secrets, and the line to the service
// manager, which would take a child's word for ours.
var private = []string{
	"CONCH_PASSWORD", "CONCH_ETCD_PASSWORD", "ETCDCTL_PASSWORD",
	"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
}

// users are the variables that may hold a password beside a name.
var users = []string{"CONCH_USER", "ETCDCTL_USER"}

// ChildEnviron is the environment that a child inherits: all of it but what is private.
func (e Env) ChildEnviron() []string {
	return slices.DeleteFunc(slices.Clone(e.Environ), func(v string) bool {
		name, value, _ := strings.Cut(v, "=")
		return slices.Contains(private, name) || slices.Contains(users, name) && strings.Contains(value, ":")
	})
}
