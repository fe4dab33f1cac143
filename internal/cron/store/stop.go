package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
)

// readBackWithin bounds the read that follows an answer that was lost.
const readBackWithin = 3 * time.Second

// changeTries is how often a change is made anew because somebody else was faster.
const changeTries = 10

// Change makes a key's value another one, if it is still the one that was read, and else reads it again. edit gets the value, nil where there is
// no key, and gives the new one; same is that nothing is to be changed. rev is the revision after which no claim is made that does not know
// of it: of the change, or, where there was none, of the read.
//
// Whether a change arrived whose answer was lost is read back: it did if the key has the new value.
func Change(ctx context.Context, client *clientv3.Client, key string, edit func(value []byte) (changed string, same bool, err error)) (rev int64, err error) {
	for range changeTries {
		got, err := client.Get(ctx, key)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", key, err)
		}
		var value []byte
		var mod int64
		if len(got.Kvs) > 0 {
			value, mod = got.Kvs[0].Value, got.Kvs[0].ModRevision
		}
		changed, same, err := edit(value)
		if err != nil {
			return 0, err
		}
		if same {
			return got.Header.Revision, nil
		}
		done, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", mod)).Then(clientv3.OpPut(key, changed)).Commit()
		switch {
		case err != nil:
			return stands(client, key, changed, err)
		case done.Succeeded:
			return done.Header.Revision, nil
		}
	}
	return 0, fmt.Errorf("write %s: %w", key, ErrChanged)
}

// stands finds out whether a change was made whose answer was lost.
func stands(client *clientv3.Client, key, changed string, lost error) (int64, error) {
	if err := decided(lost); !errors.Is(err, ErrUndecided) {
		return 0, fmt.Errorf("write %s: %w", key, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), readBackWithin)
	defer cancel()
	got, err := client.Get(ctx, key)
	if err == nil && len(got.Kvs) > 0 && string(got.Kvs[0].Value) == changed {
		return got.Kvs[0].ModRevision, nil
	}
	return 0, fmt.Errorf("write %s: %w", key, decided(lost))
}

// Undrain lets nodes claim again on a host. was is the drain that there was; ok is false where there was none.
func Undrain(ctx context.Context, client *clientv3.Client, host string) (was record.Stop, ok bool, err error) {
	got, err := client.Delete(ctx, record.Drains+host, clientv3.WithPrevKV())
	if err != nil {
		return record.Stop{}, false, fmt.Errorf("delete drain: %w", err)
	}
	for _, kv := range got.PrevKvs {
		was, _ = record.Decode[record.Stop](kv.Value)
		ok = true
	}
	return was, ok, nil
}

// modOf is the mod revision of the only key of an answer; 0: there is none.
func modOf(r *pb.RangeResponse) int64 {
	if len(r.Kvs) == 0 {
		return 0
	}
	return r.Kvs[0].ModRevision
}
