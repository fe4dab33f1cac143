// Command conchd runs jobs at their ticks, each once in the whole fleet. See package cron for what it promises, and docs/conchd.md for
// how it is used.
package main

import (
	"context"
	"os"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cli/command"
	"github.com/go-coord/coord/internal/cli/daemon"
)

func main() {
	if code, played := command.Role(os.Args); played {
		os.Exit(code)
	}
	env, ending := cli.Process()
	daemon.Frugal(env)
	code := daemon.Main(context.Background(), env)
	ending.Close()
	os.Exit(code)
}
