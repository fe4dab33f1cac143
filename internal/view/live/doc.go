// Package live reads how everything that can be held stands, and follows it: it makes the standings of package view of
// what etcd says.
//
// # What is not guaranteed
//
// A look is linearizable: how things stood at a moment between question and answer. It may be otherwise afterwards. What
// a lease has left is what etcd rounds to seconds, asked after the look: it is for people.
//
// # What is read
//
// One name is read in one transaction, and no key beyond those of that name: a user may be allowed no more. Many names are
// read in pages at one revision.
//
// Of distributed cron what runs and what is paused is read, never its claims and results: there are as many as anybody keeps.
//
// # Following
//
// Follow follows one name, FollowAll everything that can be held, FollowRuns and FollowPauses jobs. All stand on coord.Follow, which survives what becomes of etcd, and do all
// that is told in one goroutine:
//
//	coord.Follow ──keys──► relay ──► pupil ──► who is told
//	                         └─ no proof for StaleAfter ──► Stale; the next ──► Fresh
//
// A pupil that has to read more, and is not answered, asks again until it is: what it is told meanwhile waits, and is not
// skipped. So what is told is always true of its revision, and late at worst; and that it is late is told too.
package live
