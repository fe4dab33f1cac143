// Package dev is what conch-dev adds to conch: an etcd to run on where there is none.
//
// A conch command is run as it is when something answers at the endpoint that it would use, or when it needs
// no etcd at all. Else the user's shared member (package embed) takes the place of that endpoint, and one
// line on stderr says so: not after the first time, when it was only the default endpoint that is replaced.
//
// What is not guaranteed: the look at the endpoint costs a second where something accepts and stays silent;
// and an etcd that appears later is not noticed by what runs already. An endpoint that is to be reached by
// TLS or with a user is never replaced: whoever says that means a certain cluster.
//
// It is a package of its own below cli, not a part of embed, because it reads a command line and prints; and
// not one of package command, because conch must not link an etcd server.
package dev
