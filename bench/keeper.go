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
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/go-coord/coord"
)

// keeperRole, as first argument, makes this program a keeper: the rest are a kind of session, an endpoint, a number and a TTL.
const keeperRole = "act-as-keeper"

// keeping opens leases and keeps them alive until the process ends. alive says of each whether it still is, as far as its keeper knows.
type keeping func(ctx context.Context, cli *clientv3.Client, n int, ttl time.Duration) (alive func(i int) bool, err error)

func keeperKinds() map[string]keeping {
	return map[string]keeping{"coord.Session": keepOurs, "concurrency.Session": keepTheirs, "one stream, all at once": keepBare}
}

// upkeep is what a process has spent, or spends.
type upkeep struct {
	Processor time.Duration // so far
	Memory    float64       // heap and stacks of the sessions, in MB
	Alive     int           // sessions that are
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
	alive, err := open(ctx, cli, n, ttl)
	if err != nil {
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
		u := upkeep{Processor: collected - skipped, Memory: float64(used) / 1e6}
		for i := range n {
			if alive(i) {
				u.Alive++
			}
		}
		if err := json.NewEncoder(os.Stdout).Encode(u); err != nil {
			return err
		}
	}
	return nil
}

func keepOurs(ctx context.Context, cli *clientv3.Client, n int, ttl time.Duration) (func(int) bool, error) {
	all := make([]*coord.Session, n)
	_, err := spread(ctx, n, func(i int) (err error) {
		all[i], err = coord.NewSession(ctx, cli, coord.SessionOptions{TTL: ttl, Refresh: ttl / 3})
		return err
	})
	return func(i int) bool { return all[i].Check() == nil }, err
}

func keepTheirs(ctx context.Context, cli *clientv3.Client, n int, ttl time.Duration) (func(int) bool, error) {
	all := make([]*concurrency.Session, n)
	_, err := spread(ctx, n, func(i int) (err error) {
		all[i], err = concurrency.NewSession(cli, concurrency.WithTTL(int(ttl.Seconds())))
		return err
	})
	return func(i int) bool {
		select {
		case <-all[i].Done():
			return false
		default:
			return true
		}
	}, err
}

// keepBare sends all renewals at once on one stream, as seldom as the others send each. Of the answers it sees only whether the lease was
// there. It is the least that a process can do: what comes together costs less than what is spread, and sessions that were opened
// together, as here, renew together.
func keepBare(ctx context.Context, cli *clientv3.Client, n int, ttl time.Duration) (func(int) bool, error) {
	leases := make([]int64, n)
	_, err := spread(ctx, n, func(i int) error {
		got, err := cli.Grant(ctx, int64(ttl.Seconds()))
		if err == nil {
			leases[i] = int64(got.ID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	stream, err := etcdserverpb.NewLeaseClient(cli.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return nil, err
	}
	var broken atomic.Bool // a lease was gone, or the stream is
	go func() {
		for !broken.Load() {
			if got, err := stream.Recv(); err != nil || got.TTL <= 0 {
				broken.Store(true)
			}
		}
	}()
	go func() {
		clock := time.NewTicker(ttl / 3)
		defer clock.Stop()
		for !broken.Load() {
			<-clock.C
			for _, id := range leases {
				if stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: id}) != nil {
					broken.Store(true)
				}
			}
		}
	}()
	return func(int) bool { return !broken.Load() }, nil
}

// inUse is heap and stacks after a collection.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
