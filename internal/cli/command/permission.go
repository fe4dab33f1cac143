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

// lacking names what a user may not do with the keys of an office, where etcd refused that: it says "permission
// denied" and no more. So the keys are read, one by one. If all can be read, it is writing that was refused.
func lacking(client *clientv3.Client, user, office string, refusal error) error {
	if !errors.Is(refusal, rpctypes.ErrPermissionDenied) {
		return refusal
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	open, last := hold.OfficeKeys(office)
	elect := hold.ElectRange(office)
	var unread []string
	for _, key := range []string{elect, open.String(), last.String()} {
		options := []clientv3.OpOption{clientv3.WithKeysOnly(), clientv3.WithLimit(1)}
		if key == elect {
			options = append(options, clientv3.WithPrefix())
		}
		_, err := client.Get(ctx, key, options...)
		if errors.Is(cli.Classify(err), hold.ErrPermission) {
			unread = append(unread, describe(key, elect))
		}
	}
	who := "this user"
	if user != "" {
		who = "user " + cli.Quote(user)
	}
	if len(unread) > 0 {
		return fmt.Errorf("%w: %s may not read %s", hold.ErrPermission, who, strings.Join(unread, ", "))
	}
	return fmt.Errorf("%w: %s may read and not write one of %s, %s, %s", hold.ErrPermission, who, describe(elect, elect), open, last)
}

func describe(key, prefix string) string {
	if key == prefix {
		return "the prefix " + key
	}
	return key
}
