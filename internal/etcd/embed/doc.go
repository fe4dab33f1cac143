// Package embed runs one etcd member inside this process (Member), and shares one such member among the
// shells of a developer (Shared). It is for trying things out and for tests: the shipped conch and conchd
// do not link it.
//
// # What is not guaranteed
//
// A lone member has no second copy and no quorum worth the name: while its process is stopped everything
// stops, and with its directory everything is gone. The shared member speaks no TLS and asks for no password. At a unix
// socket, in a directory of mode 0700, only its own user reaches it; at a loopback port every local user does.
//
// # The shared member
//
//	      Ensure                              member process (own session, no parent)
//	look: answers? ── yes ──> use it               │
//	   │ no                                        │ serves unix:DIR/etcd.sock
//	flock DIR/lock ── busy ──> look again          │ holds the lock for its whole life
//	   │ got it                                    │
//	start, hand the lock over ───────────────────> │ idle for Grace, or told to end:
//	   │                                           │ refuse calls, forget the record, close, exit
//	wait for its one line: ready, or why not       ▼ the kernel drops the lock
//
// The lock is the authority on whether a member lives; DIR/member.json only says where, and is believed
// only if something answers there. The open file that carries the lock is inherited by the member, so there
// is no moment at which a second starter could come between.
//
// Failures: a killed member drops the lock and leaves its record and socket behind, and the next start
// replaces both. A starter killed half way either has not started yet (the lock drops with it) or has (the
// member goes on without it). A member about to end refuses every call before it closes, and it decides to
// end only while nobody is connected: so whoever got an answer, once, has a member for at least Grace. A
// member that is frozen holds the lock and answers nobody: Ensure says so when its context ends. Data with
// which two starts in a row did not become ready is moved aside to DIR/data.broken and a new store begins.
package embed
