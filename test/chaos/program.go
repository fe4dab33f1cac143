//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
)

// A program asks; it is answered. A call without an answer has no second line, or one without a known outcome.
const whatCall, whatReturn what = "call", "return"

// program is one of our own processes that speak to etcd through the library.
type program struct {
	writer
	client *clientv3.Client
	calls  int
}

// openProgram begins a program that is called with LEDGER NAME. It runs until its context ends, by SIGTERM.
func openProgram(args []string) (ctx context.Context, p *program, err error) {
	if len(args) != 2 {
		return nil, nil, errors.New("want LEDGER NAME")
	}
	file, err := os.OpenFile(args[0], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	client, err := dial(strings.Split(os.Getenv("CONCH_ENDPOINTS"), ",")...)
	if err != nil {
		return nil, nil, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, &program{writer: writer{file, event{Name: args[1], Pid: os.Getpid()}}, client: client}, nil
}

// value is one that no other call of any process writes.
func (p *program) value() string { return fmt.Sprintf("%d.%d", p.hold.Pid, p.calls+1) }

// call writes down what is asked and, unless do does not come back, what the answer is: do puts that into the event.
func (p *program) call(e event, do func(answer *event)) error {
	p.calls++
	e.At, e.What, e.Pid, e.ID = coord.Now(), whatCall, p.hold.Pid, p.calls
	if err := note(p.file, e); err != nil {
		return err
	}
	answer := event{What: whatReturn, Name: e.Name, Pid: e.Pid, ID: e.ID}
	do(&answer)
	answer.At = coord.Now()
	return note(p.file, answer)
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, span time.Duration) {
	select {
	case <-time.After(span):
	case <-ctx.Done():
	}
}
