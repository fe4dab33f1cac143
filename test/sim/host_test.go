package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// doors is how many members each host has for itself: one may fall silent, and both.
const doors = 2

// office is what all are after.
const office = "x"

// host runs one wrapper after the other.
type host struct {
	w     *world
	index int
	clock
	life *life // the wrapper that runs, nil between two
	born int

	offset  time.Duration // of the wall clock
	trouble bool          // one of its processes is in trouble: no other may be
}

// kind is that of the holds.
func (w *world) kind() string {
	if w.seats > 0 {
		return hold.KindSema
	}
	return hold.KindElect
}

// door is a member that is this host's alone.
func (h *host) door(i int) int { return h.index*doors + i }

func (h *host) client() *clientv3.Client {
	cli, err := h.w.m.NewClient(h.door(0), h.door(1))
	if err != nil {
		h.w.Errorf("make client: %v", err)
	}
	return cli
}

// run is one life after the other, as a service manager would have it.
func (h *host) run() {
	for {
		h.w.mu.Lock()
		h.born++
		l := newLife(h)
		h.life = l
		h.w.mu.Unlock()
		if h.w.jobs {
			l.serve()
		} else {
			l.wrap()
		}
		h.w.mu.Lock()
		h.life = nil
		pause := l.upTo(time.Second)
		h.w.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-h.w.end:
			return
		}
	}
}

// life is one wrapper process, or one daemon, and what belongs to it.
type life struct {
	h       *host
	name    string
	dice    *rand.Rand // w.mu held
	client  *clientv3.Client
	guards  []*guardian // one for each run: of a wrapper one, of a daemon any number (w.mu)
	torpid  bool        // the guard is frozen (w.mu)
	signals chan os.Signal
	evicted chan error

	killed chan struct{} // closed by kill -9
	once   sync.Once
	ice    chan struct{} // frozen until it is closed; nil: it is not (w.mu)
	stale  bool          // it was frozen after a reading of the clock (w.mu)

	acquiring sync.WaitGroup
	won       *held // by Acquire (w.mu)
}

// newLife begins one (w.mu held).
func newLife(h *host) *life {
	return &life{
		h: h, name: fmt.Sprintf("%c%d", 'a'+h.index, h.born), client: h.client(),
		dice:    rand.New(rand.NewPCG(h.w.seed, uint64(h.index)<<32+uint64(h.born))),
		signals: make(chan os.Signal, 4), evicted: make(chan error, 1), killed: make(chan struct{}),
	}
}

// dead reports whether it was killed.
func (l *life) dead() bool {
	select {
	case <-l.killed:
		return true
	default:
		return false
	}
}

// work is the first child that it has, nil: none (w.mu held).
func (l *life) work() *child {
	for _, g := range l.guards {
		if g.child != nil {
			return g.child
		}
	}
	return nil
}

// upTo draws a duration (w.mu held).
func (l *life) upTo(most time.Duration) time.Duration {
	return time.Duration(l.dice.Int64N(int64(most) + 1))
}

func (l *life) chance(percent int) bool { return l.dice.IntN(100) < percent }

// wrap is a wrapper from its start to its end, whichever that is.
func (l *life) wrap() {
	w := l.h.w
	g := newGuardian(l, office, l.term, release{})
	over := make(chan struct{})
	var out supervise.Outcome
	go func() {
		defer close(over)
		out = supervise.Run(context.Background(), supervise.Config{
			Kind: w.kind(), Name: office, Path: "/bin/work", Argv: []string{"work"},
			KillAfter: coord.DefaultGrace, Margin: margin, NowFunc: l.now,
		}, l, g, l.signals)
		l.acquiring.Wait()
	}()
	select {
	case <-over:
		l.close(g, out)
	case <-l.killed:
		// Whatever is left of it in this process says nothing to anybody any more.
		w.lives.Go(func() { <-over; l.end() })
	case <-w.end:
		l.signals <- syscall.SIGTERM
		<-over
		l.close(g, out)
	}
}

// term is until when its hold may be believed in (w.mu held): nothing starts before there is one.
func (l *life) term() hold.Instant {
	term, _ := l.won.Term.Deadlines()
	return term
}

// close is what the command does at its end: only where the hold was given up, or never was, is the lease revoked.
func (l *life) close(g *guardian, out supervise.Outcome) {
	w := l.h.w
	w.mu.Lock()
	won := l.won
	w.tell("%s ends: %s, released %v %s", l.name, out.Status.Outcome, out.Released, out.Status.Reason)
	w.mu.Unlock()
	if won != nil && (out.Released || out.Status.Rev == 0) {
		ctx, cancel := briefly()
		if out.Status.Rev == 0 { // nobody heard of it in time
			_ = won.free(ctx, coord.EndReleased)
		}
		_ = won.session.Close(ctx)
		cancel()
	}
	g.bye()
	l.end()
}

// end ends what a process's end ends.
func (l *life) end() {
	_ = l.client.Close() // it says that its own context has ended
	if l.won != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // there is no connection any more to revoke by
		_ = l.won.session.Close(ctx)
	}
}

// kill is kill -9 of the wrapper (w.mu held).
func (l *life) kill() {
	l.once.Do(func() {
		_ = l.client.Close()
		close(l.killed)
		l.melt()
		for _, g := range l.guards {
			g.orphan()
		}
	})
}

// evict asks the holder to leave; who does not hold yet is asked when it does.
func (l *life) evict() {
	select {
	case l.evicted <- hold.ErrEvicted:
	default: // it is asked already
	}
}

// freeze stops the wrapper (w.mu held); its connections are the caller's.
func (l *life) freeze() {
	if l.ice == nil {
		l.ice, l.stale = make(chan struct{}), l.chance(50)
	}
}

func (l *life) melt() {
	if l.ice != nil {
		close(l.ice)
		l.ice = nil
	}
}

// pass returns when the wrapper is not frozen.
func (l *life) pass() {
	for {
		l.h.w.mu.Lock()
		ice := l.ice
		l.h.w.mu.Unlock()
		if ice == nil {
			return
		}
		<-ice
	}
}

// now is the clock of the loop.
func (l *life) now() hold.Instant {
	l.h.w.mu.Lock()
	stale := l.stale
	l.h.w.mu.Unlock()
	if stale {
		at := l.h.now()
		l.pass()
		return at
	}
	l.pass()
	return l.h.now()
}

// Acquire is hold.Acquirer's: as the command has it, each attempt has a session of its own, and who loses one queues again.
func (l *life) Acquire(ctx context.Context, placed func([]byte)) (hold.Hold, error) {
	l.acquiring.Add(1)
	defer l.acquiring.Done()
	for {
		got, err := l.attempt(ctx, placed)
		if err == nil {
			return got, nil
		}
		if ctx.Err() != nil || l.client.Ctx().Err() != nil {
			return nil, fmt.Errorf("%w: %w", hold.ErrNotAcquired, err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (l *life) attempt(ctx context.Context, placed func([]byte)) (hold.Hold, error) {
	s, err := coord.NewSession(ctx, l.client, coord.SessionOptions{TTL: ttl, Margin: margin, Clock: l.h.now})
	if err != nil {
		return nil, err
	}
	term, free, err := l.compete(ctx, s, func(k coord.TermKeys) { placed(encode(k)) })
	if err != nil {
		ctx, cancel := briefly()
		defer cancel()
		_ = s.Close(ctx)
		return nil, err
	}
	got := &held{Term: term, session: s, free: free, evicted: l.evicted}
	got.info = hold.Info{
		Kind: l.h.w.kind(), Name: office, Rev: term.Token(), Lease: int64(s.Lease()), Slot: term.Slot(), TTL: s.TTL(),
	}
	w := l.h.w
	w.mu.Lock()
	l.won = got
	w.tell("%s has won, token %d", l.name, term.Token())
	w.mu.Unlock()
	if w.broken.sent {
		return believe(got, l.h.clock), nil
	}
	return got, nil
}

// freeing gives up what was won.
type freeing func(context.Context, coord.End) error

// compete wins what there is, by a session.
func (l *life) compete(ctx context.Context, s *coord.Session, placed func(coord.TermKeys)) (*coord.Term, freeing, error) {
	if l.h.w.seats > 0 {
		return l.sit(ctx, s, placed)
	}
	return l.lead(ctx, s, placed)
}

func (l *life) sit(ctx context.Context, s *coord.Session, placed func(coord.TermKeys)) (*coord.Term, freeing, error) {
	w := l.h.w
	var settle coord.SettleOptions
	if open, last := hold.SemaRecords(office); !w.broken.settling {
		settle = coord.SettleOptions{Open: open, Last: last}
	}
	m, err := s.Semaphore(coord.SemaphoreOptions{
		Key: hold.SemaPrefix(office), Max: w.seats, Slots: hold.SlotPrefix(office), Settle: settle, Placed: placed,
	})
	if err != nil {
		return nil, nil, err
	}
	term, err := m.Acquire(ctx, l.name)
	return term, func(ctx context.Context, how coord.End) error { return m.ReleaseAs(ctx, term, how) }, err
}

func (l *life) lead(ctx context.Context, s *coord.Session, placed func(coord.TermKeys)) (*coord.Term, freeing, error) {
	w := l.h.w
	var settle coord.SettleOptions
	if open, last := hold.OfficeKeys(office); !w.broken.settling {
		settle = coord.SettleOptions{Open: open.String(), Last: last.String()}
	}
	e, err := s.Election(coord.ElectionOptions{Key: hold.ElectPrefix(office), Settle: settle, Placed: placed})
	if err != nil {
		return nil, nil, err
	}
	term, err := e.CampaignTerm(ctx, l.name)
	return term, e.ResignAs, err
}

func encode(k coord.TermKeys) []byte {
	raw, _ := json.Marshal(k) // of these types it cannot fail
	return raw
}

// held is a term as a hold.Hold.
type held struct {
	*coord.Term
	session *coord.Session
	free    freeing
	info    hold.Info
	evicted chan error
}

func (h *held) Info() hold.Info       { return h.info }
func (h *held) Evicted() <-chan error { return h.evicted }
func (h *held) Testament() []byte     { return encode(h.Keys()) }

func (h *held) Deadlines() hold.Deadlines {
	term, kill := h.Term.Deadlines()
	return hold.Deadlines{Term: term, Kill: kill}
}

func (h *held) Cause() error {
	if cause := context.Cause(h.Context()); cause != nil {
		return fmt.Errorf("%w: %w", hold.ErrLost, cause)
	}
	return nil
}

func (h *held) Release(ctx context.Context, end hold.End) error { return h.free(ctx, coord.End(end)) }

// credulous is a hold whose deadlines count from when a renewal was heard of.
type credulous struct {
	*held
	mu      sync.Mutex
	now     hold.Deadlines
	renewed chan struct{}
	lost    chan struct{}
}

func believe(h *held, c clock) *credulous {
	b := &credulous{held: h, renewed: make(chan struct{}, 1), lost: make(chan struct{})}
	b.hear(c)
	go func() {
		for {
			select {
			case <-h.Renewed():
				b.hear(c)
			case <-h.Term.Lost():
				// Silence is no loss to one who counts for himself.
				if !errors.Is(context.Cause(h.Context()), coord.ErrUnproven) {
					close(b.lost)
				}
				return
			}
		}
	}()
	return b
}

func (b *credulous) hear(c clock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bounds, now := b.session.Bounds(), c.now()
	b.now = hold.Deadlines{Term: now + bounds.Term, Kill: now + bounds.Kill}
	select {
	case b.renewed <- struct{}{}:
	default:
	}
}

func (b *credulous) Deadlines() hold.Deadlines {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *credulous) Renewed() <-chan struct{} { return b.renewed }
func (b *credulous) Lost() <-chan struct{}    { return b.lost }
