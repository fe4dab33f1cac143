package worker

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/go-coord/coord/internal/cron"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// standardPath is where commands are looked for, as cron has it with the two folders of local programs.
const standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// fileMost is the largest file that a variable is read from.
const fileMost = 64 << 10

// who is whom a job runs as.
type who struct {
	name, home string
	credential *guard.Credential // nil: the daemon's own
}

// lookup finds a user; an empty name is the daemon's own.
func lookup(name string) (who, error) {
	own, err := user.Current()
	if err != nil {
		return who{}, fmt.Errorf("find own user: %w", err)
	}
	if name == "" || name == own.Username || name == own.Uid {
		return who{name: own.Username, home: own.HomeDir}, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return who{}, fmt.Errorf("user %s is not known here", hold.EscapeCut(name, 80))
		}
	}
	c := &guard.Credential{}
	for _, id := range []struct {
		text string
		to   *uint32
	}{{u.Uid, &c.UID}, {u.Gid, &c.GID}} {
		n, err := strconv.ParseUint(id.text, 10, 32)
		if err != nil {
			return who{}, fmt.Errorf("user %s: id %s is no number", hold.EscapeCut(name, 80), hold.EscapeCut(id.text, 40))
		}
		*id.to = uint32(n)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return who{}, fmt.Errorf("user %s: find groups: %w", hold.EscapeCut(name, 80), err)
	}
	for _, g := range groups {
		if n, err := strconv.ParseUint(g, 10, 32); err == nil {
			c.Groups = append(c.Groups, uint32(n))
		}
	}
	return who{name: u.Username, home: u.HomeDir, credential: c}, nil
}

// environ is what a start sees. What comes later counts.
func (w who) environ(s cron.Start, inherited []string) ([]string, error) {
	env := map[string]string{"PATH": standardPath}
	if s.Spec.EnvInherit {
		for _, v := range inherited {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
	}
	env["HOME"], env["USER"], env["LOGNAME"], env["SHELL"] = w.home, w.name, w.name, "/bin/sh"
	for name, v := range s.Spec.Env {
		text, err := read(v)
		if err != nil {
			return nil, fmt.Errorf("env %s: %w", hold.EscapeCut(name, 80), err)
		}
		env[name] = text
	}
	env["CONCH_TICK"] = strconv.FormatInt(s.ID.Tick, 10)
	env["CONCH_ATTEMPT"] = strconv.Itoa(s.Attempt)
	env["CONCH_KIND"] = string(s.Kind)
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list, nil
}

// read gives the text of a value: itself, or what its file holds.
func read(v job.EnvValue) (string, error) {
	if v.File == "" {
		return v.Value, nil
	}
	fi, err := os.Stat(v.File)
	switch {
	case err != nil:
		return "", err
	case !fi.Mode().IsRegular() || fi.Size() > fileMost:
		return "", fmt.Errorf("%s: want a file of at most %d bytes", hold.Escape(v.File), fileMost)
	}
	raw, err := os.ReadFile(v.File)
	if err != nil {
		return "", err
	}
	text := strings.TrimSuffix(string(raw), "\n")
	if strings.Contains(text, "\x00") {
		return "", fmt.Errorf("%s holds a NUL", hold.Escape(v.File))
	}
	return text, nil
}
