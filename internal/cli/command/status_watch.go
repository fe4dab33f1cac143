package command

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
	"github.com/go-coord/coord/internal/view/live"
)

// What is followed side by side.
const (
	ofHolds = "holds"
	ofHosts = "hosts"
	ofRuns  = "runs"
	ofJobs  = "jobs"
)

// onlooker is told of everything that "conch status --watch" follows, at the same time.
type onlooker interface {
	// turn is a live.Turn.
	turn(book *view.Book, names []view.Name) error
	// jobs tells what runs and whether the cluster is paused, or which jobs are, each as a whole.
	jobs(of string, r *view.Roster) error
	// host tells of a host; all are those that are up.
	host(ev coord.HostEvent, all *coord.HostWatcher) error
	// stale says that what was told of some kind may be out of date, and fresh that this is over.
	stale(of string, why error)
	fresh(of string)
}

// watchStatus keeps telling how things are until a signal comes, or nobody reads any more.
func (c *call) watchStatus(ctx context.Context, f *statusFlags) (int, error) {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	follow := func(ctx context.Context, to onlooker) error {
		err := f.Reach(ctx, client, func(ctx context.Context) error { return f.touch(ctx, client) })
		if err == nil {
			err = cli.Classify(f.follow(ctx, client, to))
		}
		return lacking(client, f.Settings, f.needs(), err)
	}
	if s := newScreen(c.env.Stdout, client, f); s != nil && !f.output.JSON() {
		return c.streamTo(ctx, s.resized, func(ctx context.Context) error { return s.run(ctx, follow) })
	}
	p := &statusPrinter{
		changePrinter: changePrinter{to: c.env.Stdout, json: f.output.JSON(), kinds: true},
		f:             f, log: cli.NewLogger(c.env.Stderr, f.Quiet, f.LogFormat), told: map[view.Name]view.Standing{}, hosts: map[string]view.Line{}, jobsTold: map[string]*jobsTold{},
	}
	return c.stream(ctx, func(ctx context.Context) error { return follow(ctx, p) })
}

// touch reads a little of everything that is to be read, so that what is not permitted is found out now.
func (f *statusFlags) touch(ctx context.Context, client *clientv3.Client) error {
	for _, need := range f.needs() {
		if _, err := client.Get(ctx, need.Key, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly()); err != nil {
			return err
		}
	}
	return nil
}

// follows are what is followed for what is asked for.
func (f *statusFlags) follows() (all []string) {
	if len(f.held()) > 0 {
		all = append(all, ofHolds)
	}
	if f.asks(hold.KindCron) {
		all = append(all, ofRuns, ofJobs)
	}
	if f.asks(hold.KindHost) {
		all = append(all, ofHosts)
	}
	return all
}

// statusStale is after how long without a proof what was told may be out of date.
const statusStale = 6 * time.Second

// follow tells until ctx ends, or one of those ends that it follows.
func (f *statusFlags) follow(ctx context.Context, client *clientv3.Client, to onlooker) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, of := range f.follows() {
		o := live.FollowOptions{StaleAfter: statusStale, Stale: func(why error) { to.stale(of, why) }, Fresh: func() { to.fresh(of) }}
		turn := func(r *view.Roster) error { return to.jobs(of, r) }
		wg.Go(func() {
			switch of {
			case ofHolds:
				cancel(live.FollowAll(ctx, client, o, to.turn))
			case ofRuns:
				cancel(live.FollowRuns(ctx, client, o, turn))
			case ofJobs:
				cancel(live.FollowPauses(ctx, client, o, turn))
			case ofHosts:
				cancel(followHosts(ctx, client, to))
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func followHosts(ctx context.Context, client *clientv3.Client, to onlooker) error {
	w, err := coord.NewHostWatcher(ctx, client, coord.WatcherOptions{Extended: true, StaleAfter: statusStale})
	if err != nil {
		return err
	}
	defer w.Close()
	for ev := range w.Events() {
		switch ev.Kind {
		case coord.ViewStale:
			to.stale(ofHosts, ev.Err)
		case coord.ViewFresh:
			to.fresh(ofHosts)
		default:
			if err := to.host(ev, w); err != nil {
				return err
			}
		}
	}
	return w.Err()
}

// statusPrinter prints what is held, and which hosts are up, and then each change.
type statusPrinter struct {
	f   *statusFlags
	log *slog.Logger

	mu sync.Mutex // two tell at the same time
	changePrinter
	told  map[view.Name]view.Standing
	hosts map[string]view.Line
	// jobsTold is by what is followed.
	jobsTold map[string]*jobsTold
}

func (p *statusPrinter) turn(book *view.Book, names []view.Name) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range names {
		if n == (view.Name{}) || !p.f.asksFor(n) {
			continue
		}
		was, is := p.told[n], book.Standing(n)
		was.Name = n
		if p.told[n] = is; !is.Known() {
			delete(p.told, n)
		}
		if err := p.print(n, view.Changes(&was, is)); err != nil {
			return err
		}
	}
	return nil
}

// host prints that a host is up or down; what else it says of itself is no change.
func (p *statusPrinter) host(ev coord.HostEvent, _ *coord.HostWatcher) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, known := p.hosts[ev.HostUUID]
	if ev.HostUUID == "" || ev.Kind == coord.HostUpdate && known || !known && !p.f.means(ev.HostUUID, ev.Metadata.Hostname) {
		return nil
	}
	l := live.HostOfEvent(ev, time.Now()).Line()
	l.Reason = ev.Reason.String()
	if p.hosts[ev.HostUUID] = l; ev.Kind == coord.HostDown {
		l.Host = cmp.Or(l.Host, was.Host)
		delete(p.hosts, ev.HostUUID)
	}
	l.At = time.Now().UTC().Format(time.RFC3339)
	if p.json {
		return printLine(p.to, cli.JSONLine(l))
	}
	text := l.At + "  " + hold.KindHost + "  " + dash(shown(l.Name)) + "  " + strings.TrimSpace(string(l.State)+" "+shown(l.Host))
	if l.Reason != "" {
		text += " (" + l.Reason + ")"
	}
	return printLine(p.to, []byte(text+"\n"))
}

func (p *statusPrinter) stale(of string, why error) { warnings(p.log, "of", of).Stale(why) }
func (p *statusPrinter) fresh(of string)            { warnings(p.log, "of", of).Fresh() }
