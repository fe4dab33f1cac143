// Command conch runs a command while it holds an office that one process at a time can hold. See
// package command for what it does, and docs for what it promises.
package main

import (
	"context"
	"os"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cli/command"
)

func main() {
	if code, played := command.Role(os.Args); played {
		os.Exit(code)
	}
	env, ending := cli.Process()
	code := command.Main(context.Background(), env)
	ending.Close()
	os.Exit(code)
}
