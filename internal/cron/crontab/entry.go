package crontab

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/nearest"
	"github.com/go-coord/coord/internal/lazy"
)

// words are those that all crons know for five fields. In schedules they mean the same.
var words = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

// strayField is a word that stands where the command should begin, and is a sixth field.
var strayField = lazy.Regexp(`^([0-9*?,/-]+)$`)

// entry reads a line with a command.
func (p *parser) entry(l *Line, body string) error {
	rest, quiet := strings.CutPrefix(body, "-")
	expression, rest, err := when(rest)
	if err != nil {
		return err
	}
	user := p.User
	if p.System {
		if user, rest = word(rest); rest == "" {
			return errors.New("there is no command: a system crontab has a user, and then the command")
		}
	}
	if err := judgeCommand(rest); err != nil {
		return err
	}
	script, stdin, err := percent(rest)
	if err != nil {
		return err
	}
	if strings.TrimLeft(script, " \t") == "" {
		return errors.New("there is no command before the %")
	}
	if err := p.usable(); err != nil {
		return err
	}

	j := &job.Job{
		Schedule: job.Strings{expression}, TZ: p.tz, Jitter: p.jitter, Script: script, Stdin: stdin,
		Env: maps.Clone(p.env), User: user, Cwd: p.home, RunTTL: p.RunTTL,
	}
	if p.shell != "/bin/sh" {
		j.Shell = p.shell
	}
	if len(j.Env) == 0 {
		j.Env = nil
	}
	name := p.name(script)
	if err := j.Validate(name); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), job.ErrSpec.Error()+": "))
	}
	p.names[name] = true
	l.Name, l.Job = name, j
	if quiet {
		l.Notes = append(l.Notes, "the leading - has no meaning here: cronie writes no log then")
	}
	if first, _ := word(script); !p.System && first == "root" {
		l.Notes = append(l.Notes, "the command begins with root: if that is a user, this is a system crontab")
	}
	return nil
}

// when reads the five fields, or the word, that a line begins with.
func when(text string) (expression, rest string, err error) {
	if strings.HasPrefix(text, "@") {
		expression, rest = word(text)
		if err := judgeWord(expression); err != nil {
			return "", "", err
		}
	} else {
		var fields []string
		for rest = text; len(fields) < 5 && rest != ""; {
			var field string
			field, rest = word(rest)
			if err := judgeField(len(fields), field); err != nil {
				return "", "", err
			}
			fields = append(fields, field)
		}
		expression = strings.Join(fields, " ")
		if len(fields) < 5 {
			return "", "", fmt.Errorf("%s has %d of five fields, and no command", quote(expression), len(fields))
		}
	}
	if rest == "" {
		return "", "", errors.New("there is no command")
	}
	return expression, rest, nil
}

// word cuts off the first word. What follows begins without blanks, and ends as it does.
func word(text string) (first, rest string) {
	end := strings.IndexAny(text, " \t")
	if end < 0 {
		return text, ""
	}
	return text[:end], strings.TrimLeft(text[end:], " \t")
}

// judgeWord says what to write instead of a word that is not one of all crons'.
func judgeWord(w string) error {
	seconds, digits := strings.CutPrefix(w, "@")
	digits = digits && seconds != "" && len(seconds) < 10 && strings.Trim(seconds, "0123456789") == ""
	switch {
	case w == "@reboot":
		return errors.New("@reboot: the start of one host is no moment in a cluster: want a unit of the host's init system, or a schedule")
	case w == "@every_second":
		return errors.New("@every_second: a word of FreeBSD's cron: want a job with the schedule @every 1s")
	case w == "@every_minute":
		return errors.New("@every_minute: a word of FreeBSD's cron: want * * * * *")
	case digits:
		return fmt.Errorf("%s: FreeBSD's cron counts from the end of the last run, which no schedule does: want a job with the schedule @every %ss", quote(w), seconds)
	case slices.Contains(words, w):
		return nil
	}
	return fmt.Errorf("%s: want five fields, or one of %s%s", quote(w), strings.Join(words, " "), nearest.Hint(nearest.Name(w, words)))
}

// judgeCommand looks at how a command begins.
func judgeCommand(command string) error {
	first, _ := word(command)
	switch {
	case strings.HasPrefix(first, "-"):
		return fmt.Errorf("the command begins with %s: flags of BSD crons are not known: want the command alone", quote(first))
	case strayField().MatchString(first):
		return fmt.Errorf("the command begins with %s: want five fields before it; a crontab has none for seconds or years", quote(first))
	}
	return nil
}
