package cli

import (
	"math"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/go-coord/coord"
)

// Connection are the flags that every command which speaks to etcd has.
type Connection struct {
	Settings
	Quiet bool

	access access
}

// AddFlags declares the flags of a connection.
func (c *Connection) AddFlags(flags *pflag.FlagSet) {
	c.Endpoints = []string{"localhost:2379"}
	c.DialTimeout = 5 * time.Second
	flags.Var(endpointList{&c.Endpoints}, "endpoints", "where etcd is: host:port, http(s)://host:port, joined by commas")
	flags.Var(Duration(&c.DialTimeout, "a duration above 0, such as 5s", Positive), "dial-timeout",
		"how long to look for an endpoint that answers, in total")
	c.access.addFlags(flags)
	flags.BoolVar(&c.Quiet, "quiet", false, "say nothing but warnings and errors")
	fromEnv(flags, "endpoints", "CONCH_ENDPOINTS", "ETCDCTL_ENDPOINTS")
	fromEnv(flags, "dial-timeout", "CONCH_DIAL_TIMEOUT", "ETCDCTL_DIAL_TIMEOUT")
	fromEnv(flags, "quiet", "CONCH_QUIET")
	AddLogFormat(flags, &c.LogFormat)
}

// AddLogFormat declares --log-format, for commands that have no connection.
func AddLogFormat(flags *pflag.FlagSet, to *string) {
	flags.Var(Choice(to, "text", "json"), "log-format", "how to write the log on stderr")
	fromEnv(flags, "log-format", "CONCH_LOG_FORMAT")
}

// AddToken declares --token, for commands that check one.
func AddToken(flags *pflag.FlagSet, to *uint64) {
	flags.Var(Number(to, math.MaxUint64), "token", "the fencing token (default that of the hold this runs under)")
	fromEnv(flags, "token", "CONCH_REV")
}

// AddTTL declares --ttl, for commands that hold something.
func AddTTL(flags *pflag.FlagSet, to *time.Duration) {
	*to = coord.DefaultTTL
	flags.Var(Duration(to, "whole seconds from 1s to 24h, such as 10s", leaseTime), "ttl",
		"lease time: how long a dead host blocks its successor")
	fromEnv(flags, "ttl", "CONCH_TTL")
}

// AddHostUUID declares --uuid, for commands that speak for a host.
func AddHostUUID(flags *pflag.FlagSet, to *string) {
	flags.StringVar(to, "uuid", "", "the host's UUID (default made of /etc/machine-id)")
	fromEnv(flags, "uuid", "CONCH_HOST_UUID")
}

// envNote marks a flag with the variables that stand in for it, the first that is set counts; fromNote with
// the one that did.
const (
	envNote  = "conch_env"
	fromNote = "conch_from"
)

// FromEnv has variables stand in for a flag that is not given: the first that is set counts.
func FromEnv(flags *pflag.FlagSet, name string, variables ...string) {
	fromEnv(flags, name, variables...)
}

func fromEnv(flags *pflag.FlagSet, name string, variables ...string) {
	_ = flags.SetAnnotation(name, envNote, variables) // fails for a flag that does not exist only
}

// BindEnv gives every flag that was not set on the command line the value of its first variable that is.
func BindEnv(flags *pflag.FlagSet, env Env) error {
	var bad error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || bad != nil {
			return
		}
		for _, variable := range f.Annotations[envNote] {
			value, ok := env.Lookup(variable)
			if !ok {
				continue
			}
			set := f.Value.Set
			if v, ok := f.Value.(interface{ SetVariable(string) error }); ok {
				set = v.SetVariable
			}
			if err := set(value); err != nil {
				bad = badValue(variable, f, value, err)
			}
			f.Annotations[fromNote] = []string{variable}
			return
		}
	})
	return bad
}

// origin is what a flag's value came from: the flag, as it is written, or a variable; empty for its default.
func origin(flags *pflag.FlagSet, name string) string {
	f := flags.Lookup(name)
	switch {
	case f.Changed:
		return "--" + name
	case len(f.Annotations[fromNote]) > 0:
		return f.Annotations[fromNote][0]
	}
	return ""
}

// rank orders origins: what ranks higher counts.
func rank(origin string) int {
	switch {
	case strings.HasPrefix(origin, "--"):
		return 3
	case strings.HasPrefix(origin, "CONCH_"):
		return 2
	case origin != "":
		return 1
	}
	return 0
}
