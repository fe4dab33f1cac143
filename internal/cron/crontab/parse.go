package crontab

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/hold"
)

// MaxSize is how many bytes a crontab may have.
const MaxSize = 1 << 20

// ErrSize is returned when a crontab has more than MaxSize bytes: then it is none.
var ErrSize = errors.New("crontab too large")

// defaultRunTTL is how long a run may take that cron would never have ended.
const defaultRunTTL = job.Duration(24 * time.Hour)

// Options say what a crontab does not.
type Options struct {
	// System: a user stands before each command, as in /etc/crontab and /etc/cron.d.
	System bool
	// User is whose crontab it is, if it is not the system's. Default: none, and jobs run as the daemon does.
	User string
	// TZ is the time zone of the host whose cron it was. Default: UTC, which the report notes.
	TZ string
	// RunTTL is how long each run may take. Default: 24h.
	RunTTL job.Duration
	// Taken are names of jobs that are in use already.
	Taken []string
}

// parser is where in a crontab we are.
type parser struct {
	Options
	zones *schedule.Zones
	// names are taken.
	names map[string]bool

	// What variables have said so far. What is set here is not in env.
	env    map[string]job.EnvValue
	shell  string
	home   string
	tz     string
	jitter job.Duration
	// unusable are variables of these that were set to what cannot be used, and the lines where: what follows depends on it.
	unusable map[string]int
}

// Parse reads a crontab. An error means that it could not be read at all; whatever is wrong with its lines is in the report.
func Parse(r io.Reader, o Options) (Report, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return Report{}, fmt.Errorf("read crontab: %w", err)
	}
	if len(data) > MaxSize {
		return Report{}, fmt.Errorf("%w: want %d bytes at most", ErrSize, MaxSize)
	}
	zones, err := schedule.OpenZones()
	if err != nil {
		return Report{}, err
	}
	if _, err := zones.Load(o.TZ); err != nil {
		return Report{}, err
	}
	o.RunTTL = cmp.Or(o.RunTTL, defaultRunTTL)
	p := &parser{Options: o, zones: zones, names: map[string]bool{}, env: map[string]job.EnvValue{}, tz: o.TZ, unusable: map[string]int{}}
	for _, name := range o.Taken {
		p.names[name] = true
	}

	var report Report
	text, last := string(data), ""
	for text != "" {
		var ended bool
		last, text, ended = strings.Cut(text, "\n")
		line := p.line(len(report.Lines)+1, last)
		if !ended && line.Kind == KindJob {
			line.Notes = append(line.Notes, "the last line has no line end: many crons do not run it")
		}
		report.Lines = append(report.Lines, line)
	}
	report.Notes = p.notes(report.Jobs())
	return report, nil
}

// line says what becomes of one line.
func (p *parser) line(number int, text string) Line {
	l := Line{Number: number, Text: text}
	body := strings.TrimLeft(text, " \t")
	var err error
	switch {
	case body == "":
		l.Kind = KindBlank
	case body[0] == '#':
		l.Kind = KindComment
	default:
		err = p.active(&l, body)
	}
	if err != nil {
		l.Kind, l.Reason = KindRefused, err.Error()
		l.Name, l.Job, l.Notes = "", nil, nil
	}
	return l
}

// active reads a line that does something.
func (p *parser) active(l *Line, body string) error {
	switch {
	case !utf8.ValidString(body):
		return errors.New("it is not UTF-8")
	case strings.HasSuffix(body, "\r"):
		return errors.New("it ends in a carriage return, which cron hands to the shell: want line ends of Unix")
	case strings.ContainsFunc(body, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return errors.New("it holds a control character")
	}
	if name, value, ok := variable(body); ok {
		l.Kind, l.Variable, l.Value = KindVariable, name, value
		return p.set(l)
	}
	if looksLikeVariable(body) {
		return errors.New("the quotes do not fit: want NAME=value, or all of the value in quotes")
	}
	l.Kind = KindJob
	return p.entry(l, body)
}

// notes are about all jobs.
func (p *parser) notes(jobs []Line) (notes []string) {
	if len(jobs) == 0 {
		return nil
	}
	notes = append(notes,
		"a tick at which a run has not ended is skipped; cron starts another beside it, as overlap allow does",
		fmt.Sprintf("a run is ended after %s (run_ttl); cron ends none", p.RunTTL),
		"cron runs a job on each host that has the crontab; these run on one node of the cluster, unless run_on and select say otherwise")
	for _, l := range jobs {
		if l.Job.TZ == "" {
			notes = append(notes, "no time zone is given, so the schedules are read in UTC; cron reads them in that of its host")
			break
		}
	}
	for _, l := range jobs {
		if l.Job.Cwd == "" {
			notes = append(notes, "where HOME is not set, a run starts in the folder of the daemon; cron starts it in the user's home")
			break
		}
	}
	return notes
}

// quote is what was typed, safe to print and short.
func quote(s string) string { return `"` + hold.EscapeCut(s, 40) + `"` }
