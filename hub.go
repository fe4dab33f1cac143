package coord

import (
	"context"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// hub is what the sessions of one client share: the streams that their renewals go over, the reads that verify
// these, and the deletes that end terms. Ten thousand sessions then cost a few dozen streams, and one Txn for up to
// maxOps keys.
//
// Nothing is shared by sharing: each session judges its own replies by its own send times, and what goes wrong
// on a stream or in a Txn is nobody's loss.
type hub struct {
	cli    *clientv3.Client
	reads  batch
	parts  partings
	ctx    context.Context // ends with the hub
	cancel context.CancelFunc
	wg     sync.WaitGroup // of streams and reads

	mu      sync.Mutex
	users   int // sessions (guarded by hubs.mu)
	streams map[*stream]struct{}
}

// hubs finds the hub of a client. It is the one variable of this package that changes: the caller owns the
// client and hands nothing else from session to session, and a field of the client's would be a worse place.
// A hub is there while a session of its client is.
var hubs = struct {
	mu sync.Mutex
	of map[*clientv3.Client]*hub
}{of: map[*clientv3.Client]*hub{}}

// joinHub is called once by each session, and leave once when it has ended, closed or not.
func joinHub(cli *clientv3.Client) *hub {
	hubs.mu.Lock()
	defer hubs.mu.Unlock()
	h := hubs.of[cli]
	if h == nil {
		h = &hub{cli: cli, streams: map[*stream]struct{}{}}
		h.reads.h, h.parts.cli = h, cli
		h.ctx, h.cancel = context.WithCancel(context.Background())
		hubs.of[cli] = h
	}
	h.users++
	return h
}

// leave ends the hub with its last session, and then waits for its goroutines.
func (h *hub) leave() {
	hubs.mu.Lock()
	h.users--
	last := h.users == 0
	if last {
		delete(hubs.of, h.cli)
	}
	hubs.mu.Unlock()
	if last {
		h.reads.drop()
		h.cancel() // nobody waits for what is under way
		h.wg.Wait()
	}
}

// sessions is how many sessions the client has.
func (h *hub) sessions() int {
	hubs.mu.Lock()
	defer hubs.mu.Unlock()
	return h.users
}

// seat finds a stream with room for one more lease. Leases of sessions that prove stand apart from plain ones,
// and alone means that nobody else may be on it.
func (h *hub) seat(proves, alone bool) *stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	for st := range h.streams {
		if !alone && !st.alone && st.proves == proves && st.leases < streamLeases {
			st.leases++
			return st
		}
	}
	st := &stream{h: h, proves: proves, alone: alone, leases: 1, kept: map[*Session]time.Time{}}
	st.tick = time.AfterFunc(time.Hour, st.renewKept)
	h.streams[st] = struct{}{}
	return st
}

// unseat gives the place up; the last one closes the stream.
func (h *hub) unseat(st *stream) {
	h.mu.Lock()
	st.leases--
	last := st.leases == 0
	if last {
		delete(h.streams, st)
	}
	h.mu.Unlock()
	if last {
		st.close()
	}
}
