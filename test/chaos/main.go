//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

// Exit codes of chaos.
const (
	codeFine      = 0
	codeViolation = 1 // something is wrong with what is tested
	codeTrouble   = 2 // a usage error, or the run itself could not be made or ended early
)

// roles are what this program is besides, by its first argument.
func roles() map[string]func(args []string) error {
	return map[string]func([]string) error{childRole: child, kinRole: kin, scribeRole: scribe, lockerRole: runLocker, hostRole: runHost, watcherRole: runWatcher, jobRole: job}
}

func main() {
	if config := os.Getenv(innerEnv); config != "" {
		os.Exit(inner(config))
	}
	if len(os.Args) > 1 {
		if play := roles()[os.Args[1]]; play != nil {
			if err := play(os.Args[2:]); err != nil {
				fmt.Fprintf(os.Stderr, "chaos: %s: %v\n", os.Args[1], err)
				os.Exit(codeViolation)
			}
			return
		}
	}
	c, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "chaos: %v\n", err)
		os.Exit(codeTrouble)
	}
	os.Exit(outer(c))
}
