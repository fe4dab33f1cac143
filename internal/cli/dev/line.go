package dev

import (
	"cmp"
	"fmt"
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

// flag gives the last value of a flag, which is the one that counts.
func (l line) flag(name string) (value string, ok bool) {
	for i, arg := range l.own {
		rest, found := strings.CutPrefix(arg, "--"+name)
		switch {
		case found && strings.HasPrefix(rest, "="):
			value, ok = rest[1:], true
		case found && rest == "" && i+1 < len(l.own):
			value, ok = l.own[i+1], true
		}
	}
	return value, ok
}

// endpoints are those that conch would use.
func (l line) endpoints(env cli.Env) string {
	flag, _ := l.flag("endpoints")
	conch, _ := env.Lookup("CONCH_ENDPOINTS")
	etcdctl, _ := env.Lookup("ETCDCTL_ENDPOINTS")
	return cmp.Or(flag, conch, etcdctl, fallback)
}

const fallback = "localhost:2379"

// offline reports whether the command asks nothing of etcd.
func (l line) offline() bool {
	for _, arg := range l.own {
		if arg == "-h" || arg == "--help" || arg == "--version" {
			return true
		}
	}
	command := l.command()
	return strings.HasPrefix(command, "__") || slices.Contains([]string{"version", "completion", "help"}, command)
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

// certain reports whether the user means a certain cluster, which a member of our own cannot stand in for.
func (l line) certain(env cli.Env) bool {
	if strings.Contains(l.endpoints(env), "https://") {
		return true
	}
	for _, name := range []string{"cacert", "cert", "key", "discovery-srv", "user", "password-file"} {
		variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		_, flag := l.flag(name)
		_, conch := env.Lookup("CONCH_" + variable)
		_, etcdctl := env.Lookup("ETCDCTL_" + variable)
		if flag || conch || etcdctl {
			return true
		}
	}
	return false
}

// announce says what the command runs on, where that is news.
func (l line) announce(env cli.Env, want, endpoint string, started bool) {
	_, quiet := env.Lookup("CONCH_QUIET")
	if quiet || slices.Contains(l.own, "--quiet") || want == fallback && !started {
		return
	}
	what := "using the etcd member"
	if started {
		what = "started an etcd member"
	}
	fmt.Fprintf(env.Stderr, "conch-dev: nothing answers at %s: %s at %s\n", hold.EscapeCut(want, 100), what, endpoint)
}

// at is env with the member's endpoint in place of any other, for conch and all that it starts.
func (l line) at(env cli.Env, endpoint string) cli.Env {
	environ := slices.DeleteFunc(slices.Clone(env.Environ), func(v string) bool {
		return strings.HasPrefix(v, "CONCH_ENDPOINTS=")
	})
	env.Environ = append(environ, "CONCH_ENDPOINTS="+endpoint)

	// A flag would count more than the variable.
	env.Args = slices.Clone(l.args)
	for i, arg := range l.own {
		switch {
		case strings.HasPrefix(arg, "--endpoints="):
			env.Args[i] = "--endpoints=" + endpoint
		case arg == "--endpoints" && i+1 < len(l.own):
			env.Args[i+1] = endpoint
		}
	}
	return env
}
