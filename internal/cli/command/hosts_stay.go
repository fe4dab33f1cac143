package command

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// unregisterWithin bounds the way out of a registration. What is left then goes with its lease.
const unregisterWithin = 3 * time.Second

// stay registers the host and keeps it registered until a signal comes.
func (c *call) stay(ctx context.Context, f *registerFlags, m coord.HostMetadata) (int, error) {
	if err := f.Discover(ctx, c.env); err != nil {
		return 0, err
	}
	signals, stop := c.env.Signals()
	defer stop()
	client, err := f.Client()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	s := &stayer{
		metadata: m, log: cli.NewLogger(c.env.Stderr, f.Quiet, f.LogFormat), manager: cli.NewNotifier(c.env),
		made: make(chan registered, 1),
	}
	defer s.manager.Close()

	try, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	go func() {
		h, err := f.registration(try, client, m, f.options(s.log))
		s.made <- registered{h, err}
	}()
	sig, err := s.loop(ctx, signals)
	switch {
	case err != nil:
		return 0, err
	case s.host == nil:
		giveUp(sig)
		return s.leave(sig)
	}
	s.unregister()
	return hold.CodeOK, nil
}

// registered is how a registration ended.
type registered struct {
	host *coord.HostLiveness
	err  error
}

// stayer is a registration, seen from outside.
type stayer struct {
	metadata coord.HostMetadata
	log      *slog.Logger
	manager  *cli.Notifier
	made     chan registered
	host     *coord.HostLiveness // nil until registered
}

// loop tells how things are until a signal asks to end, or it turns out that the host cannot be registered.
func (s *stayer) loop(ctx context.Context, signals <-chan os.Signal) (signalled, error) {
	var changes <-chan coord.LivenessChange
	var beats <-chan time.Time // nil: never
	if every := s.manager.BeatEvery(); every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		beats = ticker.C
	}
	for {
		select {
		case r := <-s.made:
			if r.err != nil {
				return 0, r.err
			}
			s.host, changes = r.host, r.host.Changes()
			s.log.Info("registered", "host_uuid", s.metadata.HostUUID, "lease", hold.FormatLease(int64(r.host.LeaseID())))
			s.manager.Ready("registered as " + s.metadata.HostUUID)
		case change := <-changes:
			s.manager.Status(s.status(change))
		case <-beats:
			s.manager.Beat()
		case <-ctx.Done():
			return signalled(syscall.SIGTERM), nil
		case sig := <-signals:
			if supervise.AsksToEnd(sig) {
				return signalled(sig.(syscall.Signal)), nil
			}
		}
	}
}

// status says in a line how the registration stands.
func (s *stayer) status(c coord.LivenessChange) string {
	if c.Err == nil {
		return "registered as " + s.metadata.HostUUID
	}
	return c.State.String() + ": " + cli.OneLine(c.Err)
}

// leave ends a registration that has not come about.
func (s *stayer) leave(sig signalled) (int, error) {
	select {
	case r := <-s.made:
		if r.err != nil && !errors.As(r.err, new(signalled)) {
			return 0, r.err // it had failed already
		}
		if s.host = r.host; s.host != nil { // it came about in the same moment
			s.unregister()
		}
	case <-time.After(leaveWithin): // what it has by then goes with its lease
	}
	return hold.SignalCode(int(sig)), nil
}

// unregister ends the registration. What etcd does not take back is left to the TTL, with a line that says so.
func (s *stayer) unregister() {
	ctx, cancel := context.WithTimeout(context.Background(), unregisterWithin)
	defer cancel()
	if err := s.host.Stop(ctx); err != nil {
		s.log.Warn("left to its ttl", "host_uuid", s.metadata.HostUUID, "reason", err.Error())
		return
	}
	s.log.Info("released", "host_uuid", s.metadata.HostUUID)
}
