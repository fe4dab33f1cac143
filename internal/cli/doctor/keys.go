package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// probe is an office that is asked about and never held: its name sorts behind most.
const probe = "zz-conch-doctor"

// permissions asks for every kind of key that a hold reads and writes.
func (v *visit) permissions(ctx context.Context) {
	open, last := hold.OfficeKeys(probe)
	for _, key := range []string{hold.ElectKey(probe, 1).String(), open.String(), last.String()} {
		area := key[:strings.LastIndex(key, probe)]
		try, cancel := v.bounded(ctx)
		err := cli.Permitted(try, v.cli, cli.Need{Key: key}, cli.Need{Key: key, Writes: true})
		cancel()
		switch {
		case err == nil:
			v.say("permission", OK, area, "may read and write")
		case errors.Is(cli.Classify(err), hold.ErrPermission):
			v.say("permission", Fail, area, "may not read and write: %v", err)
		default:
			v.say("permission", Fail, area, "cannot be found out: %v", cli.Classify(err))
		}
	}
}

// census is what lies below our root.
type census struct {
	seen int
	odd  []string        // no keys of ours
	held map[string]bool // offices with candidates
	open []string        // offices with an open record
}

// keys looks at what there is: what cannot be read as a key of ours, and records that no holder closed. A user who may
// not list all of it may well be allowed to list its own parts.
func (v *visit) keys(ctx context.Context) {
	open, _ := hold.OfficeKeys("")
	c := &census{held: map[string]bool{}}
	err := v.list(ctx, hold.Root, c)
	if errors.Is(err, hold.ErrPermission) {
		v.say("keys", Note, hold.Root, "this user may not list all of it")
		for _, part := range []string{hold.AreaRange(hold.AreaElect), open.String()} {
			if err := v.list(ctx, part, c); err != nil {
				v.say("keys", Note, part, "cannot be listed: %v", err)
				return
			}
		}
	} else if err != nil {
		v.say("keys", Fail, hold.Root, "cannot be listed: %v", err)
		return
	}
	v.say("keys", OK, hold.Root, "%d keys seen%s", c.seen, map[bool]string{true: ", and there are more"}[c.seen >= scanMost])
	for _, key := range c.odd[:min(len(c.odd), showMost)] {
		v.say("keys", Warn, hold.EscapeCut(key, 120), "is no key of ours, and in the way of none")
	}
	if more := len(c.odd) - showMost; more > 0 {
		v.say("keys", Warn, hold.Root, "%d more such keys", more)
	}
	left := slices.DeleteFunc(c.open, func(name string) bool { return c.held[name] })
	for _, name := range left[:min(len(left), showMost)] {
		v.say("unsettled", Warn, name, "the last hold did not say that its child is gone: whoever comes next waits for its TTL")
	}
	if more := len(left) - showMost; more > 0 {
		v.say("unsettled", Warn, hold.Root, "%d more such offices", more)
	}
}

// list adds what lies below a prefix.
func (v *visit) list(ctx context.Context, prefix string, c *census) error {
	for from, end := prefix, clientv3.GetPrefixRangeEnd(prefix); ; {
		try, cancel := v.bounded(ctx)
		got, err := v.cli.Get(try, from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(scanPage))
		cancel()
		if err != nil {
			return cli.Classify(err)
		}
		for _, kv := range got.Kvs {
			c.seen++
			k, err := hold.ParseKey(string(kv.Key))
			switch {
			case err != nil:
				c.odd = append(c.odd, string(kv.Key))
			case k.Area == hold.AreaElect:
				c.held[k.Name] = true
			case k.Area == hold.AreaOpen && k.Kind == hold.KindElect:
				c.open = append(c.open, k.Name)
			}
		}
		if !got.More || c.seen >= scanMost {
			return nil
		}
		from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
	}
}
