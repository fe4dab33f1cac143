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

// need is something that a command does with a key of an office, or with all keys below a prefix.
type need struct {
	key    string // a prefix, if it ends with a slash
	writes bool
}

// lookNeeds are what a question takes.
func lookNeeds(office string) []need {
	open, last := hold.OfficeKeys(office)
	return []need{{hold.ElectRange(office), false}, {open.String(), false}, {last.String(), false}}
}

// leadNeeds are what leading takes, where holds are settled or not.
func leadNeeds(office string, settles bool) []need {
	elect := hold.ElectRange(office)
	all := []need{{elect, false}, {elect, true}}
	if settles {
		open, last := hold.OfficeKeys(office)
		all = append(all, need{open.String(), false}, need{open.String(), true}, need{last.String(), true})
	}
	return all
}

func (n need) op() clientv3.Op {
	prefix := strings.HasSuffix(n.key, "/")
	switch {
	case n.writes && prefix:
		return clientv3.OpPut(n.key+"0", "")
	case n.writes:
		return clientv3.OpPut(n.key, "")
	case prefix:
		return clientv3.OpGet(n.key, clientv3.WithPrefix())
	}
	return clientv3.OpGet(n.key)
}

func (n need) String() string {
	text := "read "
	if n.writes {
		text = "write "
	}
	if strings.HasSuffix(n.key, "/") {
		text += "the prefix "
	}
	return text + n.key
}

// permitted asks etcd whether needs may be met, and does nothing: a transaction without conditions never takes
// its other branch, and etcd checks the permissions for both.
func permitted(ctx context.Context, client *clientv3.Client, needs ...need) error {
	var ops []clientv3.Op
	for _, n := range needs {
		ops = append(ops, n.op())
	}
	if _, err := client.Txn(ctx).Else(ops...).Commit(); err != nil {
		return fmt.Errorf("ask for permissions: %w", err)
	}
	return nil
}

// lacking names what is not permitted, where etcd refused something for that: it says "permission denied", and no more.
func lacking(client *clientv3.Client, s cli.Settings, needs []need, refusal error) error {
	if !errors.Is(refusal, rpctypes.ErrPermissionDenied) {
		return refusal
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	var missing []string
	for _, n := range needs {
		if err := permitted(ctx, client, n); errors.Is(err, rpctypes.ErrPermissionDenied) {
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
