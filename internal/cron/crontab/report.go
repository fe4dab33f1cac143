package crontab

import "github.com/go-coord/coord/internal/cron/job"

// Kind is what became of a line.
type Kind string

// The kinds of lines.
const (
	KindBlank    Kind = "blank"
	KindComment  Kind = "comment"
	KindVariable Kind = "variable"
	KindJob      Kind = "job"
	KindRefused  Kind = "refused"
)

// Line is one line of a crontab. Its text, and what was taken from it, was written by others; Reason and Notes are safe to print.
type Line struct {
	// Number counts from 1. Text has no line end.
	Number int
	Text   string
	Kind   Kind
	// Name and Job are what a line with a command became: a valid job, and a name that no other has.
	Name string
	Job  *job.Job
	// Variable and Value are what a variable is set to. It may be a secret.
	Variable, Value string
	// Secret: by its name it is one.
	Secret bool
	// Reason says why the line was not taken, and what to write instead.
	Reason string
	// Notes say what is different from what cron did.
	Notes []string
}

// Report is what became of a crontab, line by line.
type Report struct {
	Lines []Line
	// Notes are about all jobs of it.
	Notes []string
}

// Jobs gives the lines that became jobs.
func (r Report) Jobs() []Line { return r.of(KindJob) }

// Refused gives the lines that were not taken.
func (r Report) Refused() []Line { return r.of(KindRefused) }

func (r Report) of(kind Kind) (all []Line) {
	for _, l := range r.Lines {
		if l.Kind == kind {
			all = append(all, l)
		}
	}
	return all
}
