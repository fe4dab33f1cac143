package command

import (
	"context"
	"io"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
)

// change is one line of --watch.
type change struct {
	Event  string `json:"event"` // up, update, down, snapshot-done, stale, fresh
	At     string `json:"at"`
	Reason string `json:"reason,omitempty"` // down: expired, stopped, replaced, relabelled; stale: what is wrong
	*host         // of up, update and down
}

// relabelled is the reason of a host that is up and has lost the labels that were asked for.
const relabelled = "relabelled"

// hostPrinter prints changes of the hosts that fit, each with one write.
type hostPrinter struct {
	to    io.Writer
	fits  coord.Selector
	json  bool
	known map[string]bool // printed as up
}

// watchHosts prints the hosts that are up, and then each change, until a signal comes or nobody reads any more.
func (c *call) watchHosts(ctx context.Context, f *hostsFlags) (int, error) {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	return c.stream(ctx, func(ctx context.Context) error {
		err := f.Reach(ctx, client, func(ctx context.Context) error {
			_, err := client.Get(ctx, coord.HostsPrefix, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly())
			return err
		})
		if err != nil {
			return lacking(client, f.Settings, hostsNeeds, err)
		}
		w, err := coord.NewHostWatcher(ctx, client, coord.WatcherOptions{Extended: true})
		if err != nil {
			return lacking(client, f.Settings, hostsNeeds, cli.Classify(err))
		}
		defer w.Close()
		p := &hostPrinter{to: c.env.Stdout, fits: f.fits, json: f.output.JSON(), known: map[string]bool{}}
		return p.printAll(w)
	})
}

// printAll prints what w tells until it ends, or nobody reads any more.
func (p *hostPrinter) printAll(w *coord.HostWatcher) error {
	for ev := range w.Events() {
		if err := p.print(ev, time.Now()); err != nil {
			return err
		}
	}
	return w.Err()
}

// print prints an event, as one about the hosts that fit: one that no longer does is as good as down.
func (p *hostPrinter) print(ev coord.HostEvent, now time.Time) error {
	line := change{Event: ev.Kind.String(), At: now.UTC().Format(time.RFC3339), Reason: ev.Reason.String()}
	switch {
	case ev.Kind == coord.ViewStale:
		line.Reason = cli.OneLine(ev.Err)
	case ev.Kind == coord.SnapshotDone && !p.json:
		return nil // it is for programs
	}
	if ev.HostUUID != "" {
		h := hostOf(ev.Metadata, ev.Incarnation)
		line.host = &h
		was, is := p.known[ev.HostUUID], ev.Kind != coord.HostDown && p.fits.Fits(ev.Metadata)
		switch {
		case !was && !is:
			return nil
		case !was:
			line.Event = coord.HostUp.String()
			p.known[ev.HostUUID] = true
		case !is:
			line.Event = coord.HostDown.String()
			delete(p.known, ev.HostUUID)
			if ev.Kind != coord.HostDown {
				line.Reason = relabelled
			}
		}
	}
	if p.json {
		return printLine(p.to, cli.JSONLine(line))
	}
	return printLine(p.to, []byte(line.text()))
}

// text is the change for people.
func (l change) text() string {
	text := l.At + "  " + l.Event
	if h := l.host; h != nil {
		text += "  " + dash(shown(h.HostUUID))
		for _, one := range []string{shown(h.Hostname), shown(h.Version), h.labelText()} {
			if one != "" {
				text += "  " + one
			}
		}
	}
	if l.Reason != "" {
		text += "  (" + l.Reason + ")"
	}
	return text + "\n"
}
