package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// watch prints each change of the office's leader until a signal comes, or nobody reads any more.
func (c *call) watch(ctx context.Context, f *electFlags, name string) (int, error) {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	return c.stream(ctx, func(ctx context.Context) error { return c.follow(ctx, f, client, name) })
}

// stream has follow print until a signal comes, or nobody reads any more.
func (c *call) stream(ctx context.Context, follow func(context.Context) error) (int, error) {
	signals, stop := c.env.Signals()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- follow(ctx) }()
	for {
		select {
		case s := <-signals:
			if !supervise.AsksToEnd(s) {
				continue
			}
			// A reader that has stopped reading holds the end up for a moment only.
			cancel()
			select {
			case <-done:
			case <-time.After(leaveWithin):
			}
			return hold.SignalCode(int(s.(syscall.Signal))), nil
		case err := <-done:
			if errors.Is(err, errNobodyReads) {
				return hold.CodeOK, nil
			}
			return 0, err
		}
	}
}

// follow prints the present leader, once etcd has been reached, and then each change.
func (c *call) follow(ctx context.Context, f *electFlags, client *clientv3.Client, name string) error {
	p := &changePrinter{to: c.env.Stdout, name: name, json: f.output.JSON(), ended: func(ctx context.Context) (coord.Ended, bool) {
		open, last := hold.OfficeKeys(name)
		end, found, err := coord.LastEnd(ctx, client, coord.SettleOptions{Open: open.String(), Last: last.String()})
		return end, found && err == nil
	}}
	log := cli.NewLogger(c.env.Stderr, f.Quiet, f.LogFormat)
	w := &follower{
		client: client, office: name, prefix: hold.ElectRange(name), every: probeEvery, within: probeFor, patience: doubtsMost,
		say: func(leader coord.Candidate, unsettled *openHold) error {
			return p.print(ctx, leader, unsettled)
		},
		away:   func(why error) { sayAway(log, name, why) },
		back:   func() { log.Warn("etcd answers again", "name", name) },
		listen: func() error { return readerGone(c.env.Stdout) },
	}
	if err := f.Reach(ctx, client, w.list); err != nil {
		return lacking(client, f.Settings, lookNeeds(name), err)
	}
	return w.run(ctx)
}

func sayAway(log *slog.Logger, name string, why error) {
	log.Warn("etcd does not answer: what was printed last may be out of date", "name", name, "reason", why.Error())
}

// changePrinter prints one line a change, each with one write.
type changePrinter struct {
	to    io.Writer
	name  string
	json  bool
	ended func(context.Context) (coord.Ended, bool) // how the last hold ended, as far as that is recorded
	last  coord.Candidate                           // who led before
}

// print prints that leader leads, that it waits for the end of an earlier hold, or that nobody leads.
func (p *changePrinter) print(ctx context.Context, leader coord.Candidate, unsettled *openHold) error {
	now := time.Now().UTC().Truncate(time.Second)
	var line []byte
	switch one := (seat{Kind: hold.KindElect, Name: p.name, State: stateVacant, TTLLeft: -1, At: now.Format(time.RFC3339)}); {
	case leader.Token == 0:
		last := p.lastHold(ctx)
		one.Last = last.wire()
		line = p.line(one, now, "vacant"+last.text())
	default:
		first := seatOf(p.name, 0, leader, unsettled)
		first.TTLLeft, first.At = one.TTLLeft, one.At
		line = p.line(first, now, standingText(leader, unsettled))
	}
	p.last = leader
	return printLine(p.to, line)
}

// printLine prints a line of a stream, with one write.
func printLine(to io.Writer, line []byte) error {
	err := cli.Print(to, line)
	if errors.Is(err, syscall.EPIPE) {
		return errNobodyReads
	}
	return err
}

func (p *changePrinter) line(one seat, now time.Time, text string) []byte {
	if p.json {
		return cli.JSONLine(one)
	}
	return fmt.Appendf(nil, "%s  %s  %s\n", now.Format(time.RFC3339), p.name, text)
}

// endWithin bounds the question how the last hold ended: it is for people, and nobody waits long for it.
const endWithin = time.Second

// lastHold is how the hold before this vacancy ended. Where that hold was seen and its end is not the one
// that is recorded, nobody has said how it ended.
func (p *changePrinter) lastHold(ctx context.Context) *lastHold {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	end, found := p.ended(ctx)
	switch {
	case p.last.Token != 0 && (!found || end.Token != p.last.Token):
		return &lastHold{token: p.last.Token, holder: p.last.Identity}
	case found:
		return ofEnd(end)
	}
	return nil
}

// readerGone says when nobody can read any more what is written to w: the other end of a pipe was closed. It is
// asked because a command that has nothing to write would otherwise never find out.
func readerGone(w io.Writer) error {
	file, ok := w.(*os.File)
	if !ok {
		return nil
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return nil
	}
	gone := false
	_ = conn.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(fds, 0)
		gone = err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	if gone {
		return errNobodyReads
	}
	return nil
}
