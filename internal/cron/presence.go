package cron

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

const (
	// samples is of how many cards a peer's clock is judged: a late one makes it look slow, none makes it look fast.
	samples = 3
	// skewWarn is how far a clock may be off without a word.
	skewWarn = time.Second
	// cardPause is the least time between two cards.
	cardPause = time.Second
)

// peer is what is known of a node, this one included.
type peer struct {
	host    string
	rev     int64 // create revision of its registration; 0: it is not registered
	labels  map[string]string
	card    record.Card
	carded  bool
	offsets []time.Duration // of its clock from this one, the latest last
}

// register registers the node. While it waits for the registration of a daemon that was killed, etcd may fail for so long that
// the session is lost on which it waits: that is trouble like any later one, and it begins again.
func (o *Options) register(ctx context.Context) (*coord.HostLiveness, error) {
	for pause := againFirst; ; pause = min(2*pause, againMost) {
		live, err := coord.RegisterHostLiveness(ctx, o.Client, o.metadata(), o.liveness())
		if err == nil || !errors.Is(err, coord.ErrSessionLost) {
			return live, err
		}
		o.Logger.Warn("not registered yet", slog.String("host", o.Host), slog.String("reason", err.Error()))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// prove follows the registration: from one proof to the next.
func (n *node) prove(ctx context.Context) {
	for {
		p, err := n.live.Proven(ctx)
		if err != nil {
			return
		}
		n.post(func() { n.proven(p) })
		for going := true; going; {
			select {
			case <-p.Renewed():
				n.post(func() { n.renewed(p) })
			case <-p.Lost():
				going = false
			case <-ctx.Done():
				return
			}
		}
		n.post(func() { n.unproven(p) })
	}
}

func (n *node) proven(p *coord.Proof) {
	n.proof = p
	n.Logger.Info("registered", slog.String("host", n.Host), slog.String("lease", hold.FormatLease(int64(p.Keys().Lease))))
	if n.Proven != nil {
		n.Proven(p.Keys())
	}
	n.card()
	if n.listed() {
		n.begin()
	}
}

func (n *node) renewed(p *coord.Proof) {
	for _, r := range n.running {
		if r.hold != nil && r.hold.proof == p {
			r.hold.renew()
		}
	}
}

// unproven: what runs is ended by its guard, and this node goes on when it is registered again.
func (n *node) unproven(p *coord.Proof) {
	n.proof = nil
	why := fmt.Errorf("%w: %w", hold.ErrLost, context.Cause(p.Context()))
	if !n.stopping {
		n.Logger.Warn("session lost", slog.String("host", n.Host), slog.Int("running", len(n.running)), slog.String("reason", why.Error()))
	}
	for _, r := range n.running {
		if r.hold != nil && r.hold.proof == p {
			r.hold.lose(why)
		}
	}
}

// card has a card written that says how things are now.
func (n *node) card() {
	if n.live == nil {
		return
	}
	c := record.Card{
		Host: n.Host, Zones: zonesOf(), Running: len(n.running) - n.results, MaxRunning: n.MaxRunning, Users: n.Users, User: n.User, Stopping: n.stopping,
		Unfit: n.unfit,
	}
	for {
		select {
		case n.cards <- c:
			return
		default:
		}
		select {
		case <-n.cards: // superseded
		default:
		}
	}
}

// publish writes cards: when something changed, and every now and then for the clock.
func (n *node) publish(ctx context.Context) {
	every := time.NewTicker(cardEvery)
	defer every.Stop()
	var c record.Card
	for {
		select {
		case c = <-n.cards:
		case <-every.C:
		case <-ctx.Done():
			return
		}
		if c.Host != "" {
			n.writeCard(ctx, c)
		}
		select {
		case <-time.After(cardPause):
		case <-ctx.Done():
			return
		}
	}
}

// writeCard tells nobody if it fails: the registration does, and the next card comes soon.
func (n *node) writeCard(ctx context.Context, c record.Card) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	c.Clock = n.Now().UnixMilli()
	_, err := n.Client.Put(ctx, record.Cards+n.Host, record.Encode(c), clientv3.WithLease(n.live.LeaseID()))
	if err != nil {
		n.Logger.Debug("card not written", slog.String("reason", err.Error()))
	}
}

func (n *node) peer(host string) *peer {
	p := n.peers[host]
	if p == nil {
		p = &peer{host: host}
		n.peers[host] = p
	}
	return p
}

func (n *node) learnNode(key string, kv *mvccpb.KeyValue) {
	host, err := record.ParseName(record.Nodes, key)
	if err != nil {
		return
	}
	if kv == nil {
		delete(n.peers, host)
	} else {
		p := n.peer(host)
		m, _ := record.Decode[coord.HostMetadata](kv.Value)
		p.rev, p.labels = kv.CreateRevision, m.Labels
	}
	n.skew()
}

func (n *node) learnCard(key string, kv *mvccpb.KeyValue) {
	host, err := record.ParseName(record.Cards, key)
	if err != nil || kv == nil {
		return
	}
	p := n.peer(host)
	c, ok := record.Decode[record.Card](kv.Value)
	if !ok {
		return
	}
	p.card, p.carded = c, true
	if n.areas[record.State].listed { // of a card that was there before nobody knows when it was written
		p.offsets = append(p.offsets, time.UnixMilli(c.Clock).Sub(n.Now()))
		p.offsets = p.offsets[max(0, len(p.offsets)-samples):]
	}
	n.skew()
}

// offset is how far a peer's clock is ahead, and whether that is known.
func (p *peer) offset() (time.Duration, bool) {
	if len(p.offsets) == 0 || p.rev == 0 {
		return 0, false
	}
	return slices.Max(p.offsets), true
}

// skew judges this node's clock by those of its peers.
func (n *node) skew() {
	offsets := []time.Duration{0} // this one's own
	for host, p := range n.peers {
		if off, ok := p.offset(); ok && host != n.Host {
			offsets = append(offsets, off)
		}
	}
	slices.Sort(offsets)
	median := offsets[len(offsets)/2]
	if len(offsets)%2 == 0 {
		median = (median + offsets[len(offsets)/2-1]) / 2
	}
	was := n.unfit
	n.unfit = ""
	off := -median // this clock is ahead of the median by that
	if len(offsets) >= 3 && off.Abs() > n.MaxSkew {
		n.unfit = "clock is off by " + off.Round(time.Second).String()
	}
	if warn := off.Abs() > skewWarn; warn != n.skewed {
		n.skewed = warn
		n.Logger.Warn("clock of this node", slog.String("off_by", off.Round(100*time.Millisecond).String()), slog.Int("nodes", len(offsets)))
	}
	if (was == "") == (n.unfit == "") {
		return
	}
	n.Logger.Warn("fit to claim", slog.Bool("fit", n.unfit == ""), slog.String("reason", n.unfit))
	n.card()
	n.everything()
}

func newSeed() string { return rand.Text() }
