package supervise

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-coord/coord/internal/hold"
)

// The variables that tell a child what it runs under.
const (
	envName  = "CONCH_NAME"
	envRev   = "CONCH_REV"
	envLease = "CONCH_LEASE"
	envSlot  = "CONCH_SLOT"
)

// withoutHold is env without what an outer wrapper said about its own hold: the innermost one counts, and
// an office has no slot even where the semaphore around it has one.
func withoutHold(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{envName, envRev, envLease, envSlot, envHook, envHeld}, name)
	})
}

// environ is what the child sees, and hooks beside what is their own.
func (m *machine) environ() []string {
	if m.cfg.Inherit {
		return slices.Clip(m.env)
	}
	return withHold(m.env, m.cfg.Name, m.info)
}

// withHold adds the variables of one hold to an environment that has none of them.
func withHold(env []string, name string, info hold.Info) []string {
	env = append(slices.Clip(env),
		envName+"="+name,
		envRev+"="+strconv.FormatUint(info.Rev, 10),
		envLease+"="+hold.FormatLease(info.Lease),
	)
	if info.Slot >= 0 {
		env = append(env, envSlot+"="+strconv.Itoa(info.Slot))
	}
	return env
}
