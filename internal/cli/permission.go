package cli

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
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
