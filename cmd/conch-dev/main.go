// Command conch-dev is conch with an etcd member of its own, for when there is none: any conch command works
// with nothing installed. Without arguments it serves the member and prints what to try.
package main

import (
	"context"
	"os"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cli/command"
	"github.com/go-coord/coord/internal/cli/daemon"
	"github.com/go-coord/coord/internal/cli/dev"
	"github.com/go-coord/coord/internal/etcd/embed"
)

func main() {
	if code, ok := embed.Role(os.Args); ok {
		os.Exit(code)
	}
	if code, ok := command.Role(os.Args); ok {
		os.Exit(code)
	}
	self, err := os.Executable()
	if err != nil {
		self = "/proc/self/exe"
	}
	env, ending := cli.Process()
	code := dev.Dev{Run: command.Main, Daemon: daemon.Main, Self: self}.Main(context.Background(), env)
	ending.Close()
	os.Exit(code)
}
