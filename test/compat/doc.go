// Package compat is what users of the published coord wrote: each file uses every name of one topic as the
// documentation of that module lists it, and nothing that was added since. It has to compile unchanged, and its
// tests see to it that it does what it did.
package compat
