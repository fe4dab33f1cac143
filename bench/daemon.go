//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// daemon is a conchd.
type daemon struct {
	cmd  *exec.Cmd
	done chan error // gets how it ended
}

// startDaemons starts conchds and returns when each of them knows all jobs.
func (b *bench) startDaemons(ctx context.Context, m *member, n int) (all []*daemon, stop func() error, err error) {
	stop = func() error {
		var failed []error
		for _, d := range all {
			failed = append(failed, d.stop())
		}
		return errors.Join(failed...)
	}
	for i := range n {
		d, err := b.startDaemon(ctx, m, fmt.Sprintf("h%d", i))
		if err != nil {
			return nil, nil, b.complain(errors.Join(err, stop()))
		}
		all = append(all, d)
	}
	return all, stop, nil
}

func (b *bench) startDaemon(ctx context.Context, m *member, host string) (*daemon, error) {
	// It says that it is ready as it says it to systemd.
	socket := filepath.Join(b.dir, "notify-"+host)
	_ = os.Remove(socket) // of a former one
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("listen for a daemon: %w", err)
	}
	defer conn.Close()
	cmd := exec.Command(b.program("conchd"), "--host", host)
	cmd.Env = append(os.Environ(), "CONCH_ENDPOINTS="+m.endpoint, "NOTIFY_SOCKET="+socket)
	cmd.Stderr = b.stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start conchd: %w", err)
	}
	d := &daemon{cmd, make(chan error, 1)}
	go func() { d.done <- cmd.Wait() }()
	if err := hearReady(ctx, conn); err != nil {
		_ = cmd.Process.Kill()
		<-d.done
		return nil, fmt.Errorf("start conchd: %w", err)
	}
	return d, nil
}

// hearReady waits for READY=1.
func hearReady(ctx context.Context, conn *net.UnixConn) error {
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	for buf := make([]byte, 4096); ; {
		n, err := conn.Read(buf)
		if err != nil {
			return fmt.Errorf("wait until it is ready: %w", err)
		}
		if strings.Contains(string(buf[:n]), "READY=1") {
			return nil
		}
	}
}

func (d *daemon) pid() int { return d.cmd.Process.Pid }

// stop stops it as an operator does. One that has ended before has failed.
func (d *daemon) stop() error {
	select {
	case err := <-d.done:
		return fmt.Errorf("a daemon ended by itself: %v", err)
	default:
	}
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop a daemon: %w", err)
	}
	select {
	case err := <-d.done:
		if err != nil {
			return fmt.Errorf("stop a daemon: %w", err)
		}
		return nil
	case <-time.After(time.Minute):
		_ = d.cmd.Process.Kill()
		return fmt.Errorf("stop a daemon: it does not end: %v", <-d.done)
	}
}
