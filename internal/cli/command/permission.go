package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// lookNeeds are what a question takes.
func lookNeeds(office string) []cli.Need {
	open, last := hold.OfficeKeys(office)
	return []cli.Need{{Key: hold.ElectRange(office), Writes: false}, {Key: open.String(), Writes: false}, {Key: last.String(), Writes: false}}
}

// leadNeeds are what leading takes, where holds are settled or not.
func leadNeeds(office string, settles bool) []cli.Need {
	elect := hold.ElectRange(office)
	all := []cli.Need{
		{Key: elect, Writes: false}, {Key: elect, Writes: true}, {Key: hold.EvictRange(hold.KindElect, office), Writes: false},
	}
	if settles {
		open, last := hold.OfficeKeys(office)
		all = append(all, cli.Need{Key: open.String(), Writes: false}, cli.Need{Key: open.String(), Writes: true}, cli.Need{Key: last.String(), Writes: true})
	}
	return all
}

// semaNeeds are what holding a slot takes, where holds are settled or not, and spread over hosts, by this one's name, or not.
func semaNeeds(name string, settles bool, host string) []cli.Need {
	both := []string{hold.SemaRange(name), hold.SlotPrefix(name) + "/"}
	all := []cli.Need{{Key: hold.EvictRange(hold.KindSema, name), Writes: false}}
	if settles {
		open, last := hold.SemaRecords(name)
		both = append(both, open+"/")
		all = append(all, cli.Need{Key: last + "/", Writes: true})
	}
	if host != "" {
		both = append(both, hold.SpreadPrefix(name, host)+"/")
	}
	for _, key := range both {
		all = append(all, cli.Need{Key: key, Writes: false}, cli.Need{Key: key, Writes: true})
	}
	return all
}

// lacking names what is not permitted, where etcd refused something for that: it says "permission denied", and no more.
func lacking(client *clientv3.Client, s cli.Settings, needs []cli.Need, refusal error) error {
	if !errors.Is(refusal, rpctypes.ErrPermissionDenied) {
		return refusal
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	var missing []string
	for _, n := range needs {
		if err := cli.Permitted(ctx, client, n); errors.Is(err, rpctypes.ErrPermissionDenied) {
			missing = append(missing, n.String())
		}
	}
	if len(missing) == 0 {
		return refusal // it was granted meanwhile, or etcd is gone
	}
	who := "who gives no user"
	switch {
	case s.User != "":
		who = "user " + cli.Quote(s.User)
	case len(s.TLS.Cert) > 0:
		who = "the user that the certificate of --cert names"
	}
	return fmt.Errorf("%w: %s may not %s", hold.ErrPermission, who, strings.Join(missing, ", "))
}
