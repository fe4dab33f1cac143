package doctor

import (
	"context"
	"errors"
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
		// etcd judges all of a transaction before any of it, and this condition is never true: nothing has a version
		// below zero.
		never := clientv3.Compare(clientv3.Version(key), "<", 0)
		_, err := v.cli.Txn(try).If(never).Then(clientv3.OpPut(key, "")).Else(clientv3.OpGet(key)).Commit()
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

// keys looks at what there is below our root: what cannot be read as a key of ours, and records that no holder closed.
func (v *visit) keys(ctx context.Context) {
	var odd, left []string
	held := map[string]bool{} // offices with candidates
	var open []string
	seen := 0
	for from, end := hold.Root, clientv3.GetPrefixRangeEnd(hold.Root); ; {
		try, cancel := v.bounded(ctx)
		got, err := v.cli.Get(try, from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(scanPage))
		cancel()
		switch {
		case errors.Is(cli.Classify(err), hold.ErrPermission):
			v.say("keys", Note, hold.Root, "this user may not list it")
			return
		case err != nil:
			v.say("keys", Fail, hold.Root, "cannot be listed: %v", cli.Classify(err))
			return
		}
		for _, kv := range got.Kvs {
			seen++
			k, err := hold.ParseKey(string(kv.Key))
			switch {
			case err != nil:
				odd = append(odd, string(kv.Key))
			case k.Area == hold.AreaElect:
				held[k.Name] = true
			case k.Area == hold.AreaOpen && k.Kind == hold.KindElect:
				open = append(open, k.Name)
			}
		}
		if !got.More || seen >= scanMost {
			break
		}
		from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
	}
	v.say("keys", OK, hold.Root, "%d keys seen%s", seen, map[bool]string{true: ", and there are more"}[seen >= scanMost])
	for _, key := range odd[:min(len(odd), showMost)] {
		v.say("keys", Warn, hold.EscapeCut(key, 120), "is no key of ours, and in the way of none")
	}
	if more := len(odd) - showMost; more > 0 {
		v.say("keys", Warn, hold.Root, "%d more such keys", more)
	}
	for _, name := range open {
		if !held[name] {
			left = append(left, name)
		}
	}
	for _, name := range left[:min(len(left), showMost)] {
		v.say("unsettled", Warn, name, "the last hold did not say that its child is gone: whoever comes next waits for its TTL")
	}
	if more := len(left) - showMost; more > 0 {
		v.say("unsettled", Warn, hold.Root, "%d more such offices", more)
	}
}
