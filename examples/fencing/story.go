package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// story is one telling of it.
type story struct {
	endpoint string
	db       database
	guarded  bool
}

// tell lets it happen, and holds what comes of it against what has to.
func tell(ctx context.Context, s story) (err error) {
	how, last, says := "without a guard", "done", "by A, late"
	if s.guarded {
		how, last, says = "guarded by fence.SQL", "refused", "by B"
	}
	fmt.Printf("\n--- %s, %s\n", s.db.Name, how)
	db, err := sql.Open(s.db.Driver, s.db.DSN)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := s.db.create(ctx, db); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.db.remove(context.WithoutCancel(ctx), db)) }()

	if err := s.happens(ctx, last); err != nil {
		return err
	}
	report, err := s.db.report(ctx, db)
	if err != nil {
		return err
	}
	fmt.Printf("   the report says: %q\n", report)
	if report != says {
		return fmt.Errorf("the report says %q, want %q", report, says)
	}
	return nil
}

// happens is what both holders do. last is what has to come of the late write.
func (s story) happens(ctx context.Context, last string) error {
	a, err := s.start(ctx, "A")
	if err != nil {
		return err
	}
	defer a.end()
	steps := []func() error{
		func() error { return a.expect("holds the office") },
		func() error { return a.does("by A", "done") },
		func() error { return a.does("look by A, late", "true") },
		func() error {
			return a.signal(syscall.SIGSTOP, "is stopped (SIGSTOP) in the middle of that. Its lease runs out")
		},
	}
	if err := inOrder(steps); err != nil {
		return err
	}
	b, err := s.start(ctx, "B")
	if err != nil {
		return err
	}
	defer b.end()
	return inOrder([]func() error{
		func() error { return b.expect("holds the office") },
		func() error { return b.does("by B", "done") },
		func() error { return a.signal(syscall.SIGCONT, "wakes up (SIGCONT), and goes on where it was") },
		func() error { return a.does("by A, late", last) },
	})
}

func inOrder(steps []func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// holder is a holder's process.
type holder struct {
	name string
	cmd  *exec.Cmd
	to   io.WriteCloser
	from *bufio.Scanner
}

func (s story) start(ctx context.Context, name string) (*holder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	told, err := json.Marshal(part{name, s.endpoint, s.db, s.guarded})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, holderRole)
	cmd.Env = append(os.Environ(), partEnv+"="+string(told))
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &holder{name, cmd, to, bufio.NewScanner(from)}, nil
}

// does tells the holder something, and expects its next line to hold a word.
func (h *holder) does(what, word string) error {
	if _, err := fmt.Fprintln(h.to, what); err != nil {
		return fmt.Errorf("%s: %w", h.name, err)
	}
	return h.expect(word)
}

// expect passes the holder's next line on, and holds it against a word.
func (h *holder) expect(word string) error {
	if !h.from.Scan() {
		return errors.Join(fmt.Errorf("%s has ended", h.name), h.from.Err())
	}
	fmt.Printf("%s  %s\n", h.name, h.from.Text())
	if !strings.Contains(h.from.Text(), word) {
		return fmt.Errorf("%s: %q, want %q", h.name, h.from.Text(), word)
	}
	return nil
}

func (h *holder) signal(sig syscall.Signal, says string) error {
	fmt.Printf("%s  %s\n", h.name, says)
	return h.cmd.Process.Signal(sig)
}

// end lets the holder go: it has nothing more to hear.
func (h *holder) end() {
	_ = h.to.Close()
	_ = h.cmd.Process.Signal(syscall.SIGCONT)
	_ = h.cmd.Wait()
}
