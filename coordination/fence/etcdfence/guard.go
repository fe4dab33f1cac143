package etcdfence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordination/fence"
)

// ErrUnseen is returned by Guard.Judge when no token was seen yet: Guard.Begin, or a transaction with First in the place of
// If, makes the first one seen.
var ErrUnseen = errors.New("etcdfence: no token was seen yet")

// Guard is a key of etcd at which the highest token seen stands. It is safe for concurrent use.
type Guard struct{ key string }

// New makes a guard. It asks etcd nothing. The key stands beside what it protects, for instance "/reports/fence".
func New(key string) (*Guard, error) {
	if key == "" {
		return nil, fmt.Errorf("%w: no key", fence.ErrInvalid)
	}
	return &Guard{key}, nil
}

// digits is how many the largest token has.
const digits = 20

func encode(token uint64) string { return fmt.Sprintf("%0*d", digits, token) }

// decode accepts what encode writes, but for 0.
func decode(value []byte) (uint64, error) {
	token, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil || token == 0 || len(value) != digits {
		return 0, fence.ErrDamaged
	}
	return token, nil
}

// If are the compares that hold where a token no higher than this one was seen.
func (g *Guard) If(token uint64) []clientv3.Cmp {
	value := clientv3.Value(g.key)
	return []clientv3.Cmp{
		clientv3.Compare(value, ">", encode(0)),
		clientv3.Compare(value, "<", encode(token)+"\x00"),
	}
}

// First is the compare that holds where no token was seen.
func (g *Guard) First() []clientv3.Cmp {
	return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(g.key), "=", 0)}
}

// Then is the operation that goes with your writes: it makes the token seen.
func (g *Guard) Then(token uint64) clientv3.Op { return clientv3.OpPut(g.key, encode(token)) }

// Else is the first operation of the other branch: it finds out why.
func (g *Guard) Else() clientv3.Op { return clientv3.OpGet(g.key) }

// Judge says why a transaction with If and Else was refused: an *fence.ErrFenced, ErrUnseen, or an error that wraps
// fence.ErrDamaged. nil says that the token is good: another compare of yours has failed, or it did succeed.
func (g *Guard) Judge(token uint64, resp *clientv3.TxnResponse) error {
	if resp.Succeeded {
		return nil
	}
	var kvs []*mvccpb.KeyValue
	if len(resp.Responses) > 0 {
		kvs = resp.Responses[0].GetResponseRange().GetKvs()
	}
	if len(kvs) == 0 {
		return ErrUnseen
	}
	seen, err := decode(kvs[0].Value)
	if err != nil {
		return fmt.Errorf("%w: %q holds %.40q, want %d digits", err, g.key, kvs[0].Value, digits)
	}
	return fence.Check(g.key, token, seen)
}

// Begin makes a token seen, so that lower ones are refused from here on: call it once when a lease was acquired.
func (g *Guard) Begin(ctx context.Context, kv clientv3.KV, token uint64) error {
	_, err := g.Do(ctx, kv, token)
	return err
}

// Do applies operations in one transaction unless token is below the highest seen: then it is an *fence.ErrFenced and
// nothing was done. The first responses are those of ops, in their order. It takes one round trip, and a second one where
// no token was seen yet. After an error of etcd it is not known whether it was done.
func (g *Guard) Do(ctx context.Context, kv clientv3.KV, token uint64, ops ...clientv3.Op) (*clientv3.TxnResponse, error) {
	if err := fence.Check(g.key, token, 0); err != nil {
		return nil, err
	}
	then := append(slices.Clip(ops), g.Then(token))
	for compare := g.If(token); ; {
		resp, err := kv.Txn(ctx).If(compare...).Then(then...).Else(g.Else()).Commit()
		if err != nil {
			return nil, fmt.Errorf("write under token of %q: %w", g.key, err)
		}
		if resp.Succeeded {
			return resp, nil
		}
		// What was read is of the moment at which the compares failed.
		switch err := g.Judge(token, resp); {
		case errors.Is(err, ErrUnseen):
			compare = g.First()
		case err != nil:
			return nil, err
		default: // another one was first, and lower
			compare = g.If(token)
		}
	}
}
