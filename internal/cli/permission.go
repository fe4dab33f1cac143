package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/hold"
)

// Need is something that a command does with a key of an office, or with all keys below a prefix.
type Need struct {
	Key    string // a prefix, if it ends with a slash or an @
	Writes bool
}

func (n Need) op() clientv3.Op {
	prefix := n.prefix()
	switch {
	case n.Writes && prefix:
		return clientv3.OpPut(n.Key+"0", "")
	case n.Writes:
		return clientv3.OpPut(n.Key, "")
	case prefix:
		return clientv3.OpGet(n.Key, clientv3.WithPrefix())
	}
	return clientv3.OpGet(n.Key)
}

func (n Need) prefix() bool { return strings.HasSuffix(n.Key, "/") || strings.HasSuffix(n.Key, "@") }

func (n Need) String() string {
	text := "read "
	if n.Writes {
		text = "write "
	}
	if n.prefix() {
		text += "the prefix "
	}
	return text + n.Key
}

// Permitted asks etcd whether needs may be met, and does nothing: a transaction without conditions never takes
// its other branch, and etcd checks the permissions for both.
func Permitted(ctx context.Context, client *clientv3.Client, needs ...Need) error {
	var ops []clientv3.Op
	for _, n := range needs {
		ops = append(ops, n.op())
	}
	if _, err := client.Txn(ctx).Else(ops...).Commit(); err != nil {
		return fmt.Errorf("ask for permissions: %w", err)
	}
	return nil
}

// lackWithin bounds the question what is missing.
const lackWithin = time.Second

// Lacking names what is not permitted, where etcd refused something for that: it says "permission denied", and no more.
func (s Settings) Lacking(client *clientv3.Client, needs []Need, refusal error) error {
	if !errors.Is(refusal, rpctypes.ErrPermissionDenied) {
		return refusal
	}
	ctx, cancel := context.WithTimeout(context.Background(), lackWithin)
	defer cancel()
	var missing []string
	for _, n := range needs {
		if err := Permitted(ctx, client, n); errors.Is(err, rpctypes.ErrPermissionDenied) {
			missing = append(missing, n.String())
		}
	}
	if len(missing) == 0 {
		return refusal // it was granted meanwhile, or etcd is gone
	}
	who := "who gives no user"
	switch {
	case s.User != "":
		who = "user " + Quote(s.User)
	case len(s.TLS.Cert) > 0:
		who = "the user that the certificate of --cert names"
	}
	return fmt.Errorf("%w: %s may not %s", hold.ErrPermission, who, strings.Join(missing, ", "))
}
