// Package dev is what conch-dev adds to conch: an etcd to run on where there is none.
//
// A conch command is run as it is when it needs no etcd, when the user names one, or when something answers at
// the default endpoint. Else the user's shared member (package embed) takes the place of the default, and one
// line on stderr says so when it was started.
//
// What is not guaranteed: the look at the default endpoint costs a second where something accepts and stays
// silent; and an etcd that appears later is not noticed by what runs already. An endpoint that is named, by
// flag or by variable, is never replaced, also where it is dead, nor is a cluster that is to be reached by TLS
// or with a user: whoever says that means a certain cluster, and must hear that it is away.
//
// It is a package of its own below cli, not a part of embed, because it reads a command line and prints; and
// not one of package command, because conch must not link an etcd server.
package dev
