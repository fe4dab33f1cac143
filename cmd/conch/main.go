// Command conch runs a command while it holds an office that one process at a time can hold. See
// package command for what it does, and docs for what it promises.
package main

import (
	"context"
	"os"
	"time"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cli/command"
)

// flushWithin is how long the end waits for a reader of stderr.
const flushWithin = time.Second

func main() {
	if code, played := command.Role(os.Args); played {
		os.Exit(code)
	}
	env, stderr := cli.Process()
	code := command.Main(context.Background(), env)
	stderr.Close(flushWithin)
	os.Exit(code)
}
