package dev

import (
	"context"
	"slices"

	"github.com/go-coord/coord/internal/cli"
)

const devHelp = `conch-dev is conch on an etcd member of its own: every command of conch works with nothing installed.

  conch-dev elect hello -- echo "I lead"  on the member, which is started if it does not run
  conch-dev serve                         keep the member, until Ctrl-C
  conch-dev                               the same, and print what to try

The member is shared by all shells of a user, ends a minute after its last client, and keeps its data. It is
used only where no endpoint is named, by flag or by variable, and nothing answers at ` + fallback + `.

Command of its own:
  serve        Run the member, or keep it alive, and a conchd on it, until Ctrl-C.

What follows is the help of conch.

`

const serveHelp = `Run the etcd member that conch-dev shares between all shells of a user, or keep it alive, until Ctrl-C. A conchd
runs on it meanwhile: jobs of "conch-dev cron" are run here, as this user.

  conch-dev serve

Usage: conch-dev serve

It takes no flags. Its endpoint, a unix socket in the user's state directory, is printed first.
`

// asksHelp reports whether args ask for help about command, or, where that is empty, about all.
func asksHelp(args []string, command string) bool {
	if command == "" {
		return len(args) == 1 && slices.Contains([]string{"-h", "--help", "help"}, args[0])
	}
	rest := args[1:]
	switch args[0] {
	case command:
		return slices.Contains(rest, "-h") || slices.Contains(rest, "--help")
	case "help":
		return len(rest) == 1 && rest[0] == command
	}
	return false
}

// help explains what conch-dev adds, and then conch.
func (d Dev) help(ctx context.Context, env cli.Env) int {
	if err := cli.Print(env.Stdout, []byte(devHelp)); err != nil {
		return cli.Fail(env, env.LogFormat(), err)
	}
	return d.Run(ctx, env)
}
