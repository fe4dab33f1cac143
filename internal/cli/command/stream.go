package command

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// errNobodyReads is why a stream ends whose output nobody reads any more.
var errNobodyReads = errors.New("nobody reads the output any more")

// listenEvery is how often it is asked whether somebody still reads.
const listenEvery = 2 * time.Second

// stream has follow print until a signal comes, or nobody reads any more.
func (c *call) stream(ctx context.Context, follow func(context.Context) error) (int, error) {
	return c.streamTo(ctx, func(os.Signal) {}, follow)
}

// streamTo is stream, and hands on the signals that are no reason to end.
func (c *call) streamTo(ctx context.Context, other func(os.Signal), follow func(context.Context) error) (int, error) {
	signals, stop := c.env.Signals()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- follow(ctx) }()
	// A reader that has stopped reading holds the end up for a moment only.
	leave := func() {
		cancel()
		select {
		case <-done:
		case <-time.After(leaveWithin):
		}
	}
	listen := time.NewTicker(listenEvery)
	defer listen.Stop()
	for {
		select {
		case s := <-signals:
			if supervise.AsksToEnd(s) {
				leave()
				return hold.SignalCode(int(s.(syscall.Signal))), nil
			}
			other(s)
		case <-listen.C:
			// A command that has nothing to write would otherwise never find out.
			if readerGone(c.env.Stdout) {
				leave()
				return hold.CodeOK, nil
			}
		case err := <-done:
			if errors.Is(err, errNobodyReads) {
				return hold.CodeOK, nil
			}
			return 0, err
		}
	}
}

// printLine prints a line of a stream, with one write.
func printLine(to io.Writer, line []byte) error {
	err := cli.Print(to, line)
	if errors.Is(err, syscall.EPIPE) {
		return errNobodyReads
	}
	return err
}

// readerGone reports whether nobody can read any more what is written to w: the other end of a pipe was closed.
func readerGone(w io.Writer) (gone bool) {
	_ = onFile(w, func(fd int) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(fds, 0)
		gone = err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return gone
}

// errNoFile is returned when what is written to is no open file.
var errNoFile = errors.New("it is no file")

// onFile uses the descriptor of w, without making its file a blocking one, as File.Fd does.
func onFile(w io.Writer, use func(fd int)) error {
	file, ok := w.(*os.File)
	if !ok {
		return errNoFile
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Control(func(fd uintptr) { use(int(fd)) })
}
