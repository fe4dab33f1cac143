package crontab

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/lazy"
)

// maxDelay is the longest RANDOM_DELAY, in minutes: the longest jitter is a week.
const maxDelay = 7 * 24 * 60

var (
	// beginsVariable is a line that is meant to set one.
	beginsVariable = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*[ \t]*=`)
	variableName   = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// secretName is what variables are called that should not stand in etcd.
	secretName = lazy.Regexp(`(?i)(passw|_pwd$|secret|token|credential|_key$|apikey$)`)
)

// variable reads NAME = value. Each may be in quotes, of either kind; what stands in them is taken as it is. Without quotes a value ends with
// the line, and blanks at its end are none of it.
func variable(text string) (name, value string, ok bool) {
	name, rest, ok := quoted(text)
	if !ok {
		end := strings.IndexAny(text, " \t=")
		if end <= 0 {
			return "", "", false
		}
		name, rest = text[:end], text[end:]
	}
	rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t"), "=")
	if !ok {
		return "", "", false
	}
	rest = strings.Trim(rest, " \t")
	if rest == "" || rest[0] != '\'' && rest[0] != '"' {
		return name, rest, true
	}
	value, rest, ok = quoted(rest)
	return name, value, ok && rest == ""
}

// quoted takes a quoted text from the beginning of another one.
func quoted(text string) (inside, rest string, ok bool) {
	if text == "" || text[0] != '\'' && text[0] != '"' {
		return "", text, false
	}
	return strings.Cut(text[1:], text[:1])
}

func looksLikeVariable(text string) bool { return beginsVariable().MatchString(text) }

// set makes a variable hold for the lines that follow.
func (p *parser) set(l *Line) error {
	name, value := l.Variable, l.Value
	note := func(format string, args ...any) { l.Notes = append(l.Notes, fmt.Sprintf(format, args...)) }
	delete(p.unusable, name)
	var err error
	switch name {
	case "SHELL":
		p.shell, err = p.path(l)
	case "HOME":
		if p.home, err = p.path(l); err == nil {
			p.env[name] = job.EnvValue{Value: value}
			note("runs start there")
		}
	case "CRON_TZ":
		if _, err = p.zones.Load(value); err != nil {
			return p.lose(l, strings.TrimPrefix(err.Error(), "bad time zone: "))
		}
		p.tz = value
		if value == "" {
			p.tz = p.TZ
		}
		note("the time zone of what follows; not every cron knows CRON_TZ, and some took that of the host")
	case "RANDOM_DELAY":
		return p.delay(l)
	case "MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING":
		if value != "" {
			note("no mail is sent: output is kept in the result of the run")
		}
	case "LOGNAME":
		note("left out: cron does not let it be set")
	default:
		return p.setPlain(l)
	}
	return err
}

// setPlain sets a variable that cron hands on.
func (p *parser) setPlain(l *Line) error {
	if !variableName().MatchString(l.Variable) {
		return fmt.Errorf("variable %s: want a name of letters, digits and _, the first no digit", quote(l.Variable))
	}
	p.env[l.Variable] = job.EnvValue{Value: l.Value}
	switch {
	case l.Variable == "TZ":
		l.Notes = append(l.Notes, "for the command only: the schedule is read in the time zone of the job")
	case strings.Contains(l.Value, "$") || l.Variable == "PATH" && strings.Contains(l.Value, "~"):
		l.Notes = append(l.Notes, "taken as it stands, as cron does: no variable or ~ in it is expanded")
	}
	if secretName().MatchString(l.Variable) && l.Value != "" {
		l.Secret = true
		l.Notes = append(l.Notes, `it may be a secret, and would stand in etcd: put it into a file on the nodes, and {"file": PATH} in its place`)
	}
	return nil
}

// path is a value that has to be one.
func (p *parser) path(l *Line) (string, error) {
	if !strings.HasPrefix(l.Value, "/") {
		return "", p.lose(l, fmt.Sprintf("%s: want a path that begins with /", quote(l.Value)))
	}
	return l.Value, nil
}

// delay is RANDOM_DELAY, in minutes.
func (p *parser) delay(l *Line) error {
	n, err := strconv.Atoi(l.Value)
	if err != nil || n < 0 || n > maxDelay {
		return p.lose(l, fmt.Sprintf("%s: want whole minutes from 0 to %d", quote(l.Value), maxDelay))
	}
	p.jitter = job.Duration(n) * job.Duration(time.Minute)
	if n > 0 {
		l.Notes = append(l.Notes, "jitter "+p.jitter.String()+" of what follows: a delay made from the job's name, the same each time")
	}
	return nil
}

// lose marks a variable as one whose value cannot be used. What follows would be run in a way that nobody asked for.
func (p *parser) lose(l *Line, reason string) error {
	p.unusable[l.Variable] = l.Number
	return fmt.Errorf("%s: %s", l.Variable, reason)
}

// usable fails while a variable cannot be used.
func (p *parser) usable() error {
	for _, name := range slices.Sorted(maps.Keys(p.unusable)) {
		return fmt.Errorf("%s cannot be used: see line %d", name, p.unusable[name])
	}
	return nil
}
