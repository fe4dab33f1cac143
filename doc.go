// Package coord coordinates hosts that share one etcd: sessions on leases, leader election, semaphores, and which
// hosts are up. It is pure Go, needs nothing but the etcd client, and never dials: the caller owns the
// *clientv3.Client.
//
// # What is not promised
//
// No lock in a distributed system keeps a process from acting late. A process that is stopped, a machine
// that is frozen or suspended, can wake after its lease has gone to another and do what it was about to
// do, without having noticed. Against that there is only the fencing token ([Term.Token]): whatever must
// not be written by a superseded leader stores the highest token it has seen and refuses a lower one.
//
// The promise that is made, that two leaders' works do not overlap while processes run, holds as long as
// etcd keeps its guarantees and is not rolled back, clock *rates* of the hosts differ by less than 10 %,
// all contenders are of this package with settling on, and each stops its work by the deadline.
//
// # What is authoritative
//
// etcd decides who leads: the oldest key under the election's prefix. Local time decides one thing only,
// that a holder must not believe any longer that it leads:
//
//	Grant ──sent──► [ held ] ──no verified renewal for Bounds.Term──► lost ──Grace──► deadline
//	                   │  ▲                                             ▲
//	                   └──┘ verified renewal every TTL/10               │ at once: lease gone, own key gone
//
// Lost is final: no answer that comes later changes it. All times count from when a request was *sent*,
// on a clock that runs through suspend ([Now]), so that a slow network makes a holder give up earlier,
// never later. [Bounds] has the arithmetic and its reasons.
//
// # What happens when
//
//   - etcd is silent: the session is lost after Bounds.Silence without an answer, by the clock alone.
//   - A member is stopped or dies: one attempt is lost, the next goes elsewhere.
//   - The lease is revoked, or the key deleted: seen by the watch on the own key, or with the next
//     renewal, TTL/10 later at most. Because a holder can still be working then, a successor that settles
//     ([SettleOptions]) waits until that holder has said that it is over, or must be.
//   - A leader of etcd that was paused answers from the past: its acknowledgements are not believed; see
//     keepalive.go.
//   - A reply is lost: the request was perhaps committed. It is read back, and adopted or undone.
//   - History goes back (a restored snapshot): ErrStoreRegressed, and everything on the session is lost.
//
// # Many elections, and semaphores
//
// Elections that are needed often are lent by an [ElectionPool], on sessions that it keeps. With one shared session
// ten thousand keys cost one renewal, and share one fate.
//
// A [Semaphore] lets at most n hold. The oldest n candidates do, each in a slot with a token of its own: a fence
// for it is kept by name and slot.
//
// # Hosts
//
// [RegisterHostLiveness] keeps a key for a host on a lease. Until somebody asks for a [Proof] its renewals are
// plain, three to a lease time, and prove nothing; from then on they are those of a session that holds. What
// loses the key ends the proof and is healed:
//
//	registered ──key or lease gone──► healing ──put again──► registered
//	    │                                │
//	    │                                └──another's key──► duplicate: wait until it is gone
//	    └──Stop──► goodbye, revoke (from every state; final)
//
// A [HostWatcher] tells who is up, and each host that comes and goes. For each host Up and Down alternate, whatever
// becomes of etcd; a consumer that is slow misses what was superseded, never the last state. Down says that etcd has
// the key no more. It does not say that the host has stopped.
//
// [Follow] is what a HostWatcher stands on: any keys under a prefix, revision by revision, for whoever keeps a picture
// of his own.
//
// # What it costs
//
// A session that holds sends ten renewals and ten reads per TTL, and watches its keys; a plain one three renewals.
// The sessions of one client share streams and reads ([SessionOptions], docs/adr/0008 in the repository). [Metrics]
// tells what happens to whoever counts.
//
// # Why not etcd's own concurrency package
//
// Its keys are used here unchanged, so its clients and etcdctl elect queue with these. But its session
// tells of a loss late, its campaign can return without leading, and its resignation can be forgotten;
// see docs/adr/ in the repository.
//
// # Use
//
//	e, err := coord.NewElection(ctx, cli, coord.ElectionOptions{Key: "/coord/elect/reconcile"})
//	...
//	defer e.Close()
//	err = e.Do(ctx, "host-1", func(ctx context.Context, term *coord.Term) error {
//		return reconcile(ctx, term.Token()) // ends when ctx does; resigned after it returned
//	})
//
// A context given to a call bounds that call. What a call began ends by Resign, Close, or a loss.
package coord
