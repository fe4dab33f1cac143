// Command holdguard is the guard of a hold as a program of its own: it starts faster than one that links a
// client of etcd. It is started by conch, never by hand.
package main

import (
	"os"

	"github.com/go-coord/coord/internal/hold/guard"
)

func main() {
	if !guard.IsRole(os.Args) {
		_, _ = os.Stderr.WriteString("holdguard: started by conch, with which it has to be of the same version\n")
		os.Exit(64)
	}
	os.Exit(guard.Main())
}
