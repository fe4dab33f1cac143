package etcdlock

import (
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordination"
)

// hold is what is remembered of a key that is held: the lease that it is on, so that a renewal need not ask. It may be
// wrong, since another process can have moved the key.
type hold struct {
	token uint64
	lease clientv3.LeaseID // 0: not known
	ttl   time.Duration    // granted; 0: not known
	until time.Time        // from here on it is not worth remembering
	late  clientv3.LeaseID // not 0: a put on it may still be under way, see take
}

// holds are those of a Locker, by the names of their keys. What is not found costs a read.
type holds struct {
	mu    sync.Mutex
	of    map[string]hold
	sweep int // at so many, those that ran out are forgotten
}

// sweepAt is the least number of holds at which it is worth looking for those that ran out.
const sweepAt = 64

// get gives what is remembered of a key with that token: of another one, and of none, no more than the token.
func (h *holds) get(name string, token uint64) hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := h.of[name]; got.token == token {
		return got
	}
	return hold{token: token}
}

func (h *holds) put(name string, new hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of[name] = new
	if len(h.of) < h.sweep {
		return
	}
	for name, old := range h.of {
		if (coordination.Lease{ExpiresAt: old.until}).Expired() {
			delete(h.of, name)
		}
	}
	h.sweep = max(2*len(h.of), sweepAt)
}

// drop forgets a key if it is still the one with that token.
func (h *holds) drop(name string, token uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[name].token == token {
		delete(h.of, name)
	}
}
