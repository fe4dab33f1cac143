package redislock

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // of the scripts
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/coordination/internal/contract"
)

// DefaultPrefix is what the keys begin with unless Options say otherwise.
const DefaultPrefix = "coord:locks:"

// undoMost bounds what is tried although the caller has gone.
const undoMost = 2 * time.Second

var (
	//go:embed acquire.lua
	acquireLua string
	//go:embed renew.lua
	renewLua string
	//go:embed release.lua
	releaseLua string
)

// Options configure a Locker. The zero value is usable.
type Options struct {
	// Prefix is what the keys begin with. Default DefaultPrefix. It is used as it is: one with a hash tag of its own
	// decides which node of a cluster all locks lie on.
	Prefix string
}

// Locker grants leases by keys in Redis. Lockers with the same prefix exclude each other, in any process.
type Locker struct {
	client                  redis.Scripter
	prefix                  string
	acquire, renew, release *redis.Script
}

var _ coordination.Locker = (*Locker)(nil)

// New makes a Locker. It asks Redis nothing; the client stays the caller's: a *redis.Client, *redis.ClusterClient or
// *redis.Ring.
func New(client redis.Scripter, o Options) *Locker {
	return &Locker{
		client: client, prefix: cmp.Or(o.Prefix, DefaultPrefix),
		acquire: redis.NewScript(acquireLua), renew: redis.NewScript(renewLua), release: redis.NewScript(releaseLua),
	}
}

// Acquire grants key, unless it is there.
func (l *Locker) Acquire(ctx context.Context, key, owner string, ttl time.Duration) (coordination.Lease, bool, error) {
	if err := contract.Acquire(key, owner, ttl); err != nil {
		return coordination.Lease{}, false, err
	}
	lease := coordination.Lease{Key: key, Owner: owner, ExpiresAt: expiresAt(ttl)}
	keys := []string{l.name(key), l.name(key) + ":token"}
	got, err := l.run(ctx, l.acquire, keys, func(late any) { l.giveBack(key, late) }, rand.Text(), owner, milliseconds(ttl))
	if errors.Is(err, redis.Nil) {
		return coordination.Lease{}, false, nil
	}
	if err == nil {
		lease.Token, err = token(got)
	}
	if err != nil {
		return coordination.Lease{}, false, fmt.Errorf("acquire %q: %w", key, err)
	}
	return lease, true, nil
}

// Renew extends a lease that Redis still has.
func (l *Locker) Renew(ctx context.Context, lease coordination.Lease, ttl time.Duration) (coordination.Lease, bool, error) {
	if err := contract.Renew(lease, ttl); err != nil {
		return coordination.Lease{}, false, err
	}
	key := lease.Key
	lease.ExpiresAt = expiresAt(ttl)
	done, err := l.done(l.run(ctx, l.renew, []string{l.name(key)}, nil, lease.Token, milliseconds(ttl)))
	if err != nil {
		return coordination.Lease{}, false, fmt.Errorf("renew %q: %w", key, err)
	}
	if !done {
		return coordination.Lease{}, false, nil
	}
	return lease, true, nil
}

// Release deletes the key if it is this lease's. It is tried once where ctx has ended, for 2 s at most. After an error it
// may be called again, or the key goes after its ttl.
func (l *Locker) Release(ctx context.Context, lease coordination.Lease) error {
	if err := lease.Validate(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoMost)
		defer cancel()
		ctx = late
	}
	if _, err := l.done(l.run(ctx, l.release, []string{l.name(lease.Key)}, nil, lease.Token)); err != nil {
		return fmt.Errorf("release %q: %w", lease.Key, err)
	}
	return nil
}

// name is where a key stands. No escaped key has a brace: the first pair is the hash tag.
func (l *Locker) name(key string) string { return l.prefix + "{" + url.PathEscape(key) + "}" }

// reply is what became of a script.
type reply struct {
	got any
	err error
}

// run runs a script, and returns when ctx ends at the latest: a client does so by itself only if its ContextTimeoutEnabled
// is set. Else it goes on in the background for as long as its own timeouts let it; undo gets what is answered by then.
func (l *Locker) run(ctx context.Context, script *redis.Script, keys []string, undo func(late any), args ...any) (any, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	replies := make(chan reply)
	go func() {
		got, err := script.Run(ctx, l.client, keys, args...).Result()
		select {
		case replies <- reply{got, err}:
		case <-ctx.Done():
			if err == nil && undo != nil {
				undo(got)
			}
		}
	}()
	select {
	case r := <-replies:
		return r.got, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// giveBack releases a key whose Acquire was answered after its caller had gone.
func (l *Locker) giveBack(key string, late any) {
	if n, err := token(late); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), undoMost)
		defer cancel()
		l.release.Run(ctx, l.client, []string{l.name(key)}, n)
	}
}

// token reads the reply of acquire.lua.
func token(got any) (uint64, error) {
	text, _ := got.(string)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("redis answered %q, want a token", fmt.Sprint(got))
	}
	return n, nil
}

// done reads the reply of the other two.
func (l *Locker) done(got any, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, ok := got.(int64)
	if !ok || n != 0 && n != 1 {
		return false, fmt.Errorf("redis answered %q, want 0 or 1", fmt.Sprint(got))
	}
	return n == 1, nil
}

// milliseconds is a ttl as Redis counts it: rounded up.
func milliseconds(ttl time.Duration) int64 { return int64((ttl-1)/time.Millisecond) + 1 }

// expiresAt is the end of a lease that is asked for now. What rounding adds is nobody's.
func expiresAt(ttl time.Duration) time.Time { return contract.ExpiresAt(time.Now(), ttl, ttl) }
