//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package guard

// A hold ends its child by process group, and this system has none: conch does not build here. Use package coord,
// which does, and let the work watch its context.
var _ = conchNeedsProcessGroupsWhichThisSystemDoesNotHave
