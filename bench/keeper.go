//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/go-coord/coord"
)

// keeperRole, as first argument, makes this program a keeper: the rest are a kind of session, an endpoint, a number and a TTL.
const keeperRole = "act-as-keeper"

// keeperKinds open a lease and keep it alive until the process ends.
func keeperKinds() map[string]func(context.Context, *clientv3.Client, int, time.Duration) error {
	return map[string]func(context.Context, *clientv3.Client, int, time.Duration) error{
		"coord.Session": keepOurs, "concurrency.Session": keepTheirs, "one stream, by a clock": keepBare,
	}
}

// upkeep is what a process has spent, or spends.
type upkeep struct {
	Processor time.Duration // so far
	Memory    float64       // heap and stacks of the sessions, in MB
}

// keeper is a process that keeps sessions.
type keeper struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

// startKeeper starts one, and returns when it has opened its sessions.
func startKeeper(ctx context.Context, kind, endpoint string, n int, ttl time.Duration) (*keeper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, keeperRole, kind, endpoint, strconv.Itoa(n), ttl.String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a keeper: %w", err)
	}
	k := &keeper{cmd, in, json.NewDecoder(out)}
	if _, err := k.ask(); err != nil {
		k.stop()
		return nil, err
	}
	return k, nil
}

// ask asks how much was spent so far.
func (k *keeper) ask() (u upkeep, err error) {
	if _, err = fmt.Fprintln(k.in); err == nil {
		err = k.out.Decode(&u)
	}
	if err != nil {
		return u, fmt.Errorf("ask a keeper: %w", err)
	}
	return u, nil
}

// stop ends the process. Its leases go with the server.
func (k *keeper) stop() {
	if k == nil {
		return
	}
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
}

// playRole runs this process as a keeper, if that is what it was started for.
func playRole(args []string) (code int, played bool) {
	if len(args) != 6 || args[1] != keeperRole {
		return 0, false
	}
	n, badNumber := strconv.Atoi(args[4])
	ttl, badTTL := time.ParseDuration(args[5])
	err := errors.Join(badNumber, badTTL)
	if err == nil {
		err = keepMany(args[2], args[3], n, ttl)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "keeper: %v\n", err)
		return 1, true
	}
	return 0, true
}

// keepMany opens sessions, and answers each line that it reads with what it has spent, until there is no more to read.
func keepMany(kind, endpoint string, n int, ttl time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	open, known := keeperKinds()[kind]
	if !known {
		return fmt.Errorf("no sessions of kind %q", kind)
	}
	cli, err := connect(endpoint)
	if err != nil {
		return err
	}
	defer cli.Close()
	before := inUse()
	if err := open(ctx, cli, n, ttl); err != nil {
		return fmt.Errorf("open sessions: %w", err)
	}
	var skipped time.Duration
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		spent, err := processorTime(os.Getpid())
		if err != nil {
			return err
		}
		// The collection that tells how much is in use is not part of what is measured.
		used := inUse() - before
		collected, err := processorTime(os.Getpid())
		if err != nil {
			return err
		}
		skipped += collected - spent
		if err := json.NewEncoder(os.Stdout).Encode(upkeep{collected - skipped, float64(used) / 1e6}); err != nil {
			return err
		}
	}
	return nil
}

func keepOurs(ctx context.Context, cli *clientv3.Client, n int, ttl time.Duration) error {
	_, err := spread(ctx, n, func(int) error {
		_, err := coord.NewSession(ctx, cli, coord.SessionOptions{TTL: ttl, Refresh: ttl / 3})
		return err
	})
	return err
}

func keepTheirs(ctx context.Context, cli *clientv3.Client, n int, ttl time.Duration) error {
	_, err := spread(ctx, n, func(int) error {
		_, err := concurrency.NewSession(cli, concurrency.WithTTL(int(ttl.Seconds())))
		return err
	})
	return err
}

// keepBare sends each lease's renewal when it is due, one after the other on one stream, and looks at no answer.
func keepBare(ctx context.Context, cli *clientv3.Client, n int, ttl time.Duration) error {
	leases := make([]int64, n)
	_, err := spread(ctx, n, func(i int) error {
		got, err := cli.Grant(ctx, int64(ttl.Seconds()))
		if err == nil {
			leases[i] = int64(got.ID)
		}
		return err
	})
	if err != nil {
		return err
	}
	stream, err := etcdserverpb.NewLeaseClient(cli.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return err
	}
	go func() {
		for { // until the process ends, or the stream does
			if _, err := stream.Recv(); err != nil {
				return
			}
		}
	}()
	const beats = 100 // in a period
	go func() {
		clock := time.NewTicker(ttl / 3 / beats)
		for beat := 0; ; beat++ {
			<-clock.C
			for i := beat % beats; i < n; i += beats {
				if stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: leases[i]}) != nil {
					return
				}
			}
		}
	}()
	return nil
}

// inUse is heap and stacks after a collection.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
