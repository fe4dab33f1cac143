package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
)

// fleet is what there is of hosts, at one revision.
type fleet struct {
	seen, hosts int
	named       map[string][]string // UUIDs by host name
	odd         pile                // no hosts
	unreadable  pile                // hosts whose value says nothing
	leaseless   pile                // hosts that never go by themselves
}

func newFleet() *fleet {
	sort := func(what string) pile { return pile{check: "hosts", level: Warn, root: coord.HostsPrefix, what: what} }
	return &fleet{named: map[string][]string{}, odd: sort("such keys"), unreadable: sort("such hosts"), leaseless: sort("such hosts without a lease")}
}

// hosts looks at which hosts are registered.
func (v *visit) hosts(ctx context.Context) {
	var f *fleet
	var cut bool
	err := rpctypes.ErrCompacted
	for try := 0; try < listTries && errors.Is(err, rpctypes.ErrCompacted); try++ {
		f = newFleet()
		_, cut, err = v.pages(ctx, coord.HostsPrefix, clientv3.GetPrefixRangeEnd(coord.HostsPrefix), 0, &f.seen, f.take)
	}
	switch {
	case errors.Is(err, hold.ErrPermission):
		v.say("hosts", Note, coord.HostsPrefix, "this user may not look at hosts")
		return
	case err != nil:
		v.say("hosts", Fail, coord.HostsPrefix, "cannot be listed: %v", err)
		return
	}
	v.say("hosts", OK, coord.HostsPrefix, "%d registered%s", f.hosts, map[bool]string{true: ", and there are more"}[cut])
	for _, one := range []pile{f.odd, f.unreadable, f.leaseless, f.namesakes()} {
		v.show(one)
	}
}

func (f *fleet) take(kv *mvccpb.KeyValue) {
	uuid := string(kv.Key)[len(coord.HostsPrefix):]
	if uuid == "" || strings.Contains(uuid, "/") {
		f.odd.add(string(kv.Key), "is no host, and in the way of none")
		return
	}
	f.hosts++
	m, err := coord.DecodeHost(kv)
	if err != nil {
		f.unreadable.add(uuid, "counts as up, but its value is that of no host: %s", hold.EscapeCut(errors.Unwrap(err).Error(), 200))
	}
	if kv.Lease == 0 {
		f.leaseless.add(uuid, "its key is on no lease: it looks up until somebody deletes it, and keeps the host from registering")
	}
	if m.Hostname != "" {
		f.named[m.Hostname] = append(f.named[m.Hostname], uuid)
	}
}

// namesakes are hosts of one name: perhaps one that was given another UUID, perhaps two agents on one host.
func (f *fleet) namesakes() pile {
	p := pile{check: "hosts", level: Note, root: coord.HostsPrefix, what: "such host names"}
	for _, name := range slices.Sorted(maps.Keys(f.named)) {
		if uuids := f.named[name]; len(uuids) > 1 {
			p.add(name, "this host name is registered as %s", uuidsText(uuids))
		}
	}
	return p
}

func uuidsText(all []string) string {
	var words []string
	for _, uuid := range all[:min(len(all), showMost)] {
		words = append(words, hold.EscapeCut(uuid, 60))
	}
	text := strings.Join(words, ", ")
	if more := len(all) - showMost; more > 0 {
		text += " and others"
	}
	return text
}
