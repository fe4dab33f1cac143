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
package live
