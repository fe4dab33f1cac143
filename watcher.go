package coord

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// WatcherOptions configure a [HostWatcher]. The zero value is usable.
type WatcherOptions struct {
	// Prefix is where the hosts register. Default [HostsPrefix].
	Prefix string
	// Logger gets hosts whose value cannot be read, and when etcd falls silent and answers again. nil discards.
	Logger *slog.Logger
	// IncludeSelf is the UUID of a host that is left out, despite its name: give the own one, so as not to
	// react to oneself. The name is kept for programs that use it; ExcludeSelf does the same.
	IncludeSelf string
	// ExcludeSelf is the UUID of a host that is left out: no event, and not in Snapshot.
	ExcludeSelf string

	// Extended asks for all kinds of events, not just HostUp and HostDown.
	Extended bool
	// DownGrace is how long a host may be away without a word: one that is back by then is told as nothing, or
	// as a HostUpdate where it says something else of itself. Every HostDown comes later by as much. Default 0.
	DownGrace time.Duration
	// StaleAfter is how old the last proof may be that nothing was missed, before the view counts as stale. A
	// proof is one small linearizable read each half of it, also while all is well. Default 10 s, at least 1 s.
	StaleAfter time.Duration
}

func (o WatcherOptions) withDefaults() (WatcherOptions, error) {
	o.Prefix = hostKey(o.Prefix, "")
	o.StaleAfter = cmp.Or(o.StaleAfter, defaultStaleAfter)
	if o.DownGrace < 0 {
		return o, fmt.Errorf("%w: DownGrace %v: want a positive duration", ErrInvalidOption, o.DownGrace)
	}
	return o, checkStaleAfter(o.StaleAfter)
}

// follow is how the hosts are followed.
func (o WatcherOptions) follow() FollowOptions {
	return FollowOptions{Prefix: o.Prefix, StaleAfter: o.StaleAfter, PageSize: defaultPage}
}

// HostWatcher tells which hosts are there, and keeps telling when that changes.
//
// It starts with a HostUp for each host that is there, and goes on with HostUp and HostDown in the order in
// which they happened. For each host the two alternate, always. A consumer that keeps up hears of every change;
// for one that does not, changes of a host are folded into what is needed to bring it up to date: it never
// loses the final state, and it holds up neither etcd nor other consumers. What is kept for it is bounded by
// the number of hosts.
//
// It survives what etcd does: broken connections, members that stop or lose their quorum, compaction,
// expired tokens, restored stores. Then it looks again and tells the difference, and nothing twice.
//
// # What is not promised
//
// A HostDown is late: by what is left of the host's lease, plus up to 2 s in etcd, plus DownGrace; more where
// thousands of leases end at once, and up to a whole lease time more where etcd changes its leader, which
// starts all leases anew. And it says that the host could not renew its lease, not that the host is dead: see
// the package comment before acting on it.
type HostWatcher struct {
	opts   WatcherOptions
	ctx    context.Context // ends the watcher; its cause says why
	cancel context.CancelCauseFunc
	out    chan HostEvent
	news   chan struct{} // full when the roll may have something to tell
	wg     sync.WaitGroup

	mu   sync.Mutex
	roll *roll
}

// NewHostWatcher reads the hosts that are there, and watches from then on. ctx is the lifetime of the
// watcher: it ends when ctx does, or with Close. Where etcd refuses, or does not answer for one and a half
// times StaleAfter, there is no watcher, and the error says why. The client stays the caller's.
func NewHostWatcher(ctx context.Context, cli *clientv3.Client, o WatcherOptions) (*HostWatcher, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &HostWatcher{opts: o, out: make(chan HostEvent), news: make(chan struct{}, 1), roll: newRoll(o)}
	t := newTail(cli, o.follow(), hostHandler{w})
	if err := t.begin(ctx); err != nil {
		return nil, fmt.Errorf("watch hosts: %w", err)
	}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.wg.Go(func() {
		defer context.AfterFunc(cli.Ctx(), func() { w.cancel(ErrClientClosed) })()
		t.run(w.ctx)
	})
	w.wg.Go(w.deliver)
	return w, nil
}

// Events yields what happens. The channel is closed only after the watcher has ended; Err says why.
func (w *HostWatcher) Events() <-chan HostEvent { return w.out }

// Wait returns when the watcher has ended and nothing of it runs any more.
func (w *HostWatcher) Wait() { w.wg.Wait() }

// Err says why the watcher has ended: the cause of its context, or ErrClosed, or ErrClientClosed. It is nil
// before.
func (w *HostWatcher) Err() error { return context.Cause(w.ctx) }

// Close ends the watcher and waits until nothing of it runs any more. Events that were not taken are dropped.
// It may be called more than once.
func (w *HostWatcher) Close() error {
	w.cancel(ErrClosed)
	w.wg.Wait()
	return nil
}

// deliver sends what the roll has to tell to the consumer, for as long as that takes.
func (w *HostWatcher) deliver() {
	defer close(w.out)
	for {
		w.mu.Lock()
		ev, ok, after := w.roll.next(time.Now())
		w.mu.Unlock()
		if ok {
			select {
			case w.out <- ev:
				continue
			case <-w.ctx.Done():
				return
			}
		}
		var due <-chan time.Time
		if after > 0 {
			due = time.After(after)
		}
		select {
		case <-w.news:
		case <-due:
		case <-w.ctx.Done():
			return
		}
	}
}

// enter changes the roll, and lets deliver know.
func (w *HostWatcher) enter(change func(r *roll, now time.Time)) {
	w.mu.Lock()
	change(w.roll, time.Now())
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// hostHandler enters what is told of the hosts' keys.
type hostHandler struct{ w *HostWatcher }

func (h hostHandler) List(all []*mvccpb.KeyValue, rev int64) {
	readings := readAll(all)
	h.w.enter(func(r *roll, now time.Time) { r.list(readings, rev, now) })
}

func (h hostHandler) Events(events []*clientv3.Event, _ int64) {
	h.w.enter(func(r *roll, now time.Time) {
		for _, ev := range events {
			r.event(ev, now)
		}
	})
}

func (h hostHandler) Fresh(at time.Time, _ int64) {
	h.w.enter(func(r *roll, _ time.Time) { r.fresh(at) })
}

func (h hostHandler) Trouble(err error) {
	orDiscard(h.w.opts.Logger).Debug("watching the hosts failed, and is tried again", slog.Any("err", err))
	h.w.enter(func(r *roll, _ time.Time) { r.why = err })
}
