package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
	"github.com/go-coord/coord/internal/view/live"
)

// census is what lies below our root, at one revision.
type census struct {
	book   *view.Book
	seen   int
	cut    bool      // there is more
	odd    []string  // no keys of ours
	asked  []request // to leave
	hidden []string  // prefixes that this user may not list
}

// listTries is how often it is begun to list everything: between two pages its revision may have been compacted.
const listTries = 3

// keys looks at what there is: what cannot be read as a key of ours, and what is wrong with how things stand.
func (v *visit) keys(ctx context.Context) {
	c, err := v.census(ctx)
	for try := 1; try < listTries && errors.Is(err, rpctypes.ErrCompacted); try++ {
		c, err = v.census(ctx)
	}
	if err != nil {
		v.say("keys", Fail, hold.Root, "cannot be listed: %v", err)
		return
	}
	v.tell(c)
}

// tell says what was seen.
func (v *visit) tell(c *census) {
	if len(c.hidden) > 0 {
		v.say("keys", Note, hold.Root, "this user may not list all of it%s", c.unjudged())
	}
	if !c.blind() {
		v.say("keys", OK, hold.Root, "%d keys seen%s", c.seen, map[bool]string{true: ", and there are more"}[c.cut])
	}
	p := pile{check: "keys", level: Warn, root: hold.Root, what: "such keys"}
	for _, key := range c.odd {
		p.add(key, "is no key of ours, and %s", inTheWay(key))
	}
	v.show(p)
	if c.cut {
		v.say("keys", Note, hold.Root, "these are too many to say how offices and semaphores stand")
		return
	}
	v.standings(c)
	v.requests(c, time.Now())
}

// unjudged names what is not to be seen of what holds are about.
func (c *census) unjudged() string {
	if len(c.hidden) == 1 { // the root
		return ""
	}
	return ", nor " + strings.Join(c.hidden[1:], ", ") + ": what stands there is not judged"
}

// blind reports whether nothing at all may be listed.
func (c *census) blind() bool { return len(c.hidden) == 1+len(parts()) }

// inTheWay says what a key does that is none of ours.
func inTheWay(key string) string {
	name := ""
	if n, ok := view.NameOf(key); ok && !strings.HasPrefix(key, hold.AreaRange(hold.AreaLast)) {
		name = n.Name
	} else if rest, spread := strings.CutPrefix(key, hold.AreaRange(hold.AreaSpread)); spread {
		name, _, _ = strings.Cut(rest, "/")
	}
	if hold.ValidName(name) != nil {
		return "in the way of none"
	}
	return "lies among those of " + name + ": it may keep others out of that"
}

// parts are the prefixes that tell how things stand.
func parts() []string {
	return slices.Concat(kindParts(hold.KindElect), kindParts(hold.KindSema), []string{hold.AreaRange(hold.AreaSpread)})
}

// kindParts are those that tell how what is of one kind stands, and who was asked to leave it. How the last hold ended is
// no part of it: it takes no permission to read that to hold something.
func kindParts(kind string) (all []string) {
	last := hold.AreaRange(hold.AreaLast)
	for _, prefix := range append(view.KindRanges(kind), hold.AreaRange(hold.AreaEvict)+kind+"/") {
		if !strings.HasPrefix(prefix, last) {
			all = append(all, prefix)
		}
	}
	return all
}

// census lists all keys. A user who may not do that may well be allowed to list its own parts.
func (v *visit) census(ctx context.Context) (*census, error) {
	c := &census{book: view.NewBook(nil, 0)}
	err := v.listRoot(ctx, c)
	if !errors.Is(err, hold.ErrPermission) {
		return c, err
	}
	c.hidden = append(c.hidden, hold.Root)
	for _, part := range parts() {
		switch err := v.list(ctx, part, clientv3.GetPrefixRangeEnd(part), c); {
		case errors.Is(err, hold.ErrPermission):
			c.hidden = append(c.hidden, part)
		case err != nil || c.cut:
			return c, err
		}
	}
	return c, nil
}

// listRoot lists all but distributed cron, of which there is more than anybody wants to list: that is looked at by itself.
func (v *visit) listRoot(ctx context.Context, c *census) error {
	if err := v.list(ctx, hold.Root, record.Root, c); err != nil || c.cut {
		return err
	}
	return v.list(ctx, clientv3.GetPrefixRangeEnd(record.Root), clientv3.GetPrefixRangeEnd(hold.Root), c)
}

// list adds what lies from one key up to another, at the revision of what was listed first.
func (v *visit) list(ctx context.Context, from, end string, c *census) (err error) {
	c.book.Rev, c.cut, err = v.pages(ctx, from, end, c.book.Rev, &c.seen, func(kv *mvccpb.KeyValue) {
		c.book.Put(live.EntryOf(kv))
		switch key, err := hold.ParseKey(string(kv.Key)); {
		case err != nil:
			c.odd = append(c.odd, string(kv.Key))
		case key.Area == hold.AreaEvict:
			c.asked = append(c.asked, request{key, kv.Lease, hold.DecodeEviction(kv.Value)})
		}
	})
	return err
}

// pages reads what lies from one key up to another, as it was at a revision, and returns that; 0 is now. seen counts the keys;
// cut is that there are more than are looked at.
func (v *visit) pages(
	ctx context.Context, from, end string, rev int64, seen *int, take func(*mvccpb.KeyValue),
) (at int64, cut bool, err error) {
	for {
		try, cancel := v.bounded(ctx)
		got, err := v.cli.Get(try, from, clientv3.WithRange(end), clientv3.WithLimit(scanPage), clientv3.WithRev(rev))
		cancel()
		if err != nil {
			return rev, false, cli.Classify(err)
		}
		if rev == 0 {
			rev = got.Header.Revision
		}
		for _, kv := range got.Kvs {
			*seen++
			take(kv)
		}
		if cut = got.More && *seen >= scanMost; cut || !got.More {
			return rev, cut, nil
		}
		from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
	}
}

// pile is what one check found of one sort: the first few are shown, the others counted.
type pile struct {
	check string
	level Level
	root  string // where the others are
	what  string // how they are called
	found []Finding
	more  int
}

// add takes in a finding. What goes into the text has been escaped, and is short.
func (p *pile) add(target, format string, args ...any) {
	if len(p.found) == showMost {
		p.more++
		return
	}
	p.found = append(p.found, Finding{p.check, p.level, hold.EscapeCut(target, targetMost), fmt.Sprintf(format, args...)})
}

func (v *visit) show(p pile) {
	v.found = append(v.found, p.found...)
	if p.more > 0 {
		v.say(p.check, p.level, p.root, "%d more %s", p.more, p.what)
	}
}
