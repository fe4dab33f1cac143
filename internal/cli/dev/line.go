package dev

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// line is a command line of conch, as far as conch-dev has to understand it.
type line struct {
	args []string
	own  []string // what is conch's: all before "--"
}

func parse(args []string) line {
	own := args
	if i := slices.Index(args, "--"); i >= 0 {
		own = args[:i]
	}
	return line{args, own}
}

// flag reports whether a flag is given.
func (l line) flag(name string) bool {
	return slices.ContainsFunc(l.own, func(arg string) bool {
		return arg == "--"+name || strings.HasPrefix(arg, "--"+name+"=")
	})
}

// fallback is the endpoint that conch uses where none is named.
const fallback = "localhost:2379"

// offline reports whether the command asks nothing of etcd.
func (l line) offline() bool {
	for _, arg := range l.own {
		if arg == "-h" || arg == "--help" || arg == "--version" {
			return true
		}
	}
	command := l.command()
	if i := slices.Index(l.own, command); command == "cron" && i+1 < len(l.own) {
		return slices.Contains([]string{"explain", "validate"}, l.own[i+1])
	}
	return strings.HasPrefix(command, "__") || slices.Contains([]string{"version", "completion", "help", "fence"}, command)
}

// command is the first word that is neither a flag nor the value of one that may precede a command.
func (l line) command() string {
	for i := 0; i < len(l.own); i++ {
		switch arg := l.own[i]; {
		case arg == "--endpoints" || arg == "--dial-timeout":
			i++
		case !strings.HasPrefix(arg, "-"):
			return arg
		}
	}
	return ""
}

// certain reports whether the user names a cluster, or says how to be let into one. A member of our own stands in
// for neither: who names one would believe to hold an office there.
func (l line) certain(env cli.Env) bool {
	for _, name := range []string{"endpoints", "cacert", "cert", "key", "insecure-skip-verify", "discovery-srv", "user", "password-file"} {
		variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		_, conch := env.Lookup("CONCH_" + variable)
		_, etcdctl := env.Lookup("ETCDCTL_" + variable)
		if l.flag(name) || conch || etcdctl {
			return true
		}
	}
	return false
}

// announce says what the command runs on, where that is news.
func (l line) announce(env cli.Env, want, endpoint string, started bool) {
	_, quiet := env.Lookup("CONCH_QUIET")
	if quiet || slices.Contains(l.own, "--quiet") || !started {
		return
	}
	text := fmt.Sprintf("nothing answers at %s: started an etcd member at %s", hold.EscapeCut(want, 100), endpoint)
	if format := l.logFormat(env); format == "json" {
		cli.Say(env, format, slog.LevelInfo, text)
		return
	}
	fmt.Fprintf(env.Stderr, "conch-dev: %s\n", text)
}

// logFormat is how conch will write its log, as far as conch-dev understands the line.
func (l line) logFormat(env cli.Env) string {
	format := env.LogFormat()
	for i, arg := range l.own {
		value, given := strings.CutPrefix(arg, "--log-format=")
		if arg == "--log-format" && i+1 < len(l.own) {
			value, given = l.own[i+1], true
		}
		if given {
			format = value
		}
	}
	return format
}

// at is env with the member's endpoint, for conch and all that it starts. No flag names another: see certain.
func (l line) at(env cli.Env, endpoint string) cli.Env {
	environ := slices.DeleteFunc(slices.Clone(env.Environ), func(v string) bool {
		return strings.HasPrefix(v, "CONCH_ENDPOINTS=") // set and empty
	})
	env.Environ = append(environ, "CONCH_ENDPOINTS="+endpoint)
	return env
}
