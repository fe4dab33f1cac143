package cli

// What a binary says of itself; the linker sets these (see the Makefile). Nothing else writes them.
var (
	Version = "dev"
	Commit  = "unknown"
	Date    = "unknown"
)
