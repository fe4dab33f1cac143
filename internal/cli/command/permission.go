package command

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// lookNeeds are what a question about a name takes.
func lookNeeds(n view.Name) (all []cli.Need) {
	for _, r := range n.Ranges() {
		all = append(all, cli.Need{Key: r, Writes: false})
	}
	return all
}

// leadNeeds are what leading takes, where holds are settled or not.
func leadNeeds(office string, settles bool) []cli.Need {
	all := both(hold.ElectRange(office))
	if settles {
		open, last := hold.OfficeKeys(office)
		all = append(append(all, both(open.String())...), cli.Need{Key: last.String(), Writes: true})
	}
	return append(all, leaveNeeds(hold.KindElect, office)...)
}

// semaNeeds are what holding a slot takes, where holds are settled or not, and spread over hosts, by this one's name, or not.
func semaNeeds(name string, settles bool, host string) []cli.Need {
	all := append(both(hold.SemaRange(name)), both(hold.SlotPrefix(name)+"/")...)
	if settles {
		open, last := hold.SemaRecords(name)
		all = append(append(all, both(open+"/")...), cli.Need{Key: last + "/", Writes: true})
	}
	if host != "" {
		all = append(all, both(hold.SpreadPrefix(name, host)+"/")...)
	}
	return append(all, leaveNeeds(hold.KindSema, name)...)
}

// leaveNeeds are what it takes to be asked to leave. A holder writes no request, but the request is on its lease: etcd
// renews and revokes a lease only for who may write all keys that are on it.
func leaveNeeds(kind, name string) []cli.Need { return both(hold.EvictRange(kind, name)) }

// both is to read and to write.
func both(key string) []cli.Need {
	return []cli.Need{{Key: key, Writes: false}, {Key: key, Writes: true}}
}

// lacking names what is not permitted, where etcd refused something for that.
func lacking(client *clientv3.Client, s cli.Settings, needs []cli.Need, refusal error) error {
	return s.Lacking(client, needs, refusal)
}
