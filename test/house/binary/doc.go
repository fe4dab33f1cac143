// Package binary looks into the commands as they are shipped: how large they are, and what is linked.
//
// What is not guaranteed: anything about what they do. That a symbol is absent is proof; so that a check
// for absence cannot pass by looking at the wrong thing, a symbol that has to be there is looked for too.
//
// The binaries are built here, with the flags of the Makefile, rather than taken from bin/: a size that
// depends on when somebody last ran make is no size.
package binary
