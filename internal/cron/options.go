package cron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/hold"
)

// Defaults of Options.
const (
	DefaultTTL          = 10 * time.Second
	DefaultMaxRunning   = 256
	DefaultDrainTimeout = 30 * time.Second
	DefaultMaxSkew      = 5 * time.Second
)

// Options configure a node. Client, Host and Runner are required.
type Options struct {
	Client *clientv3.Client
	Host   string            // names the node: one daemon a name
	Labels map[string]string // what jobs select by
	Runner Runner

	// User is as whom this process runs; jobs that name nobody run as that user. Users are further ones as whom jobs may
	// run; "*" is anybody.
	User  string
	Users []string

	// TTL is the lease time of the node's session. Grace and Margin are those of coord.SessionOptions.
	TTL, Grace, Margin time.Duration
	// MaxRunning is how many starts may run here at a time. Default 256.
	MaxRunning int
	// DrainTimeout is how long what runs may go on when Run is to end. Default 30 s. Negative: not at all.
	DrainTimeout time.Duration
	// MaxSkew is how far this node's clock may be off the median of three nodes or more. Default 5 s.
	MaxSkew time.Duration
	// ReadOnly: nothing is claimed, run or recorded.
	ReadOnly bool
	Version  string

	// ScanEvery is the longest time between two looks at the agenda, each of which calls Metrics.Scanned. Default 15 s.
	ScanEvery time.Duration
	// Hurry, when it yields, ends what runs though DrainTimeout is not over.
	Hurry <-chan struct{}

	// Now is the wall clock: what ticks are judged by. Default time.Now. Mono is the clock of leases and of what has to be waited
	// for. Default coord.Now.
	Now  func() time.Time
	Mono func() time.Duration
	// Logger gets a line a transition. nil discards.
	Logger *slog.Logger
	// Registered is called once, when the node is registered and knows all jobs.
	Registered func()
	// Proven is told of each registration that is proven, with what another process needs to take it away if this one is
	// killed. It must not block.
	Proven func(coord.TermKeys)
	// Busy is told when there is more to start than may be begun, and when all of it was started. It must not block.
	Busy func(bool)
	// Metrics is told what happens.
	Metrics Metrics
}

// Metrics is what there is to count. Each function may be nil, must not block, and is called by one goroutine at a time.
type Metrics struct {
	// Ended is called for each result that this node wrote.
	Ended func(*record.Result)
	// Scanned is called each time that the node has looked at its agenda: when it does not come, nothing is scheduled.
	Scanned func()
}

// Runner starts what was claimed, and returns when nothing of it is left. The end of ctx asks for the end of the run; what it
// is renewed by, and lost with, is h.
type Runner interface {
	Run(ctx context.Context, s Start, h hold.Hold) Ended
}

// Start is something to be started.
type Start struct {
	Job     string
	Spec    *job.Job
	ID      record.ID
	Kind    record.Kind
	Attempt int
	// Started is called when there is a process.
	Started func(pid int)
}

// Ended says how a run ended.
type Ended struct {
	Started   time.Time // zero: there was no process
	Pid       int
	Code      int
	Signal    string // that ended it; empty: none
	Lost      error  // the hold was lost, and why; nil: it was not
	Err       error  // why there was no process, or what is not known
	Unclean   bool   // something of it is left, and may live on
	User, Sys time.Duration
	MaxRSS    int64
	Output    record.Output
}

// ErrOptions is returned when an option cannot be meant.
var ErrOptions = errors.New("cron: invalid option")

func (o Options) withDefaults() (Options, error) {
	o.TTL = cmp.Or(o.TTL, DefaultTTL)
	o.MaxRunning = cmp.Or(o.MaxRunning, DefaultMaxRunning)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, DefaultDrainTimeout)
	o.MaxSkew = cmp.Or(o.MaxSkew, DefaultMaxSkew)
	o.ScanEvery = min(cmp.Or(o.ScanEvery, slice), slice)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Mono == nil {
		o.Mono = coord.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.Client == nil, o.Runner == nil && !o.ReadOnly:
		return o, fmt.Errorf("%w: a client and a runner are needed", ErrOptions)
	case hold.ValidName(o.Host) != nil:
		return o, fmt.Errorf("%w: host: %w", ErrOptions, hold.ValidName(o.Host))
	case o.MaxRunning < 1:
		return o, fmt.Errorf("%w: max running %d, want at least 1", ErrOptions, o.MaxRunning)
	case o.MaxSkew < time.Second:
		return o, fmt.Errorf("%w: max skew %v, want at least 1s", ErrOptions, o.MaxSkew)
	}
	return o, nil
}

// entryLeast is how long at least a node waits for the registration of one that went before. One that lives is told from one that is
// gone much sooner, by its renewals; but each change of etcd's leader gives what is gone its whole time again.
const entryLeast = time.Minute

// liveness is how a node registers.
func (o *Options) liveness() coord.LivenessOptions {
	return coord.LivenessOptions{
		DuplicateWait: max(entryLeast, 4*o.TTL),
		Prefix:        record.Nodes, LeaseTTLSec: int64(o.TTL / time.Second), Grace: o.Grace, Margin: o.Margin, Logger: o.Logger, Clock: o.Mono,
	}
}

func (o *Options) metadata() coord.HostMetadata {
	return coord.HostMetadata{HostUUID: o.Host, Hostname: o.Host, Version: o.Version, Labels: o.Labels}
}

// zonesOf is the version of the time zones that ticks are computed with here.
func zonesOf() string { return schedule.Version() }
