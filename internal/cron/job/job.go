package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// ErrSpec is returned when a job cannot be meant as it stands. The text names the field, the value and what is accepted. It is one
// line, safe to print.
var ErrSpec = errors.New("bad job")

// MaxSize is how many bytes of JSON a job may have.
const MaxSize = 128 << 10

// Job is the spec of a job, without its name, which is in the key. Whoever changes one calls Validate before it is written. What is
// zero was not said: the methods know the defaults.
type Job struct {
	// Schedule, Seconds, TZ and DST are read by package schedule: they make the ticks, with StartAt and EndAt, before and after
	// which none counts. Jitter delays each run by the same part of it: see Shift.
	Schedule Strings    `json:"schedule,omitempty"`
	Seconds  bool       `json:"seconds,omitempty"`
	TZ       string     `json:"tz,omitempty"`
	DST      string     `json:"dst,omitempty"`
	Jitter   Duration   `json:"jitter,omitempty"`
	StartAt  *time.Time `json:"start_at,omitempty"`
	EndAt    *time.Time `json:"end_at,omitempty"`

	// What is run: Cmd, an argument vector, or Script, by Shell.
	Cmd    []string `json:"cmd,omitempty"`
	Script string   `json:"script,omitempty"`
	Shell  string   `json:"shell,omitempty"`
	Stdin  string   `json:"stdin,omitempty"`

	// In what surroundings. EnvInherit: the daemon's own environment, too.
	Env        map[string]EnvValue `json:"env,omitempty"`
	EnvInherit bool                `json:"env_inherit,omitempty"`
	User       string              `json:"user,omitempty"`
	Cwd        string              `json:"cwd,omitempty"`
	Umask      string              `json:"umask,omitempty"`

	// Where: on one node or on all, of those that have all labels of Select.
	RunOn  string            `json:"run_on,omitempty"`
	Select map[string]string `json:"select,omitempty"`
	Prefer string            `json:"prefer,omitempty"`

	// What if: the one before still runs; nobody came in time; nobody was there at all; it does not end; it fails; its node dies.
	Overlap       string   `json:"overlap,omitempty"`
	StartDeadline Duration `json:"start_deadline,omitempty"`
	Catchup       *Catchup `json:"catchup,omitempty"`
	RunTTL        Duration `json:"run_ttl,omitempty"`
	KillAfter     Duration `json:"kill_after,omitempty"`
	Retry         *Retry   `json:"retry,omitempty"`
	OnLost        string   `json:"on_lost,omitempty"`
	SuccessCodes  []int    `json:"success_codes,omitempty"`

	// What is kept of a run.
	Output  *Output  `json:"output,omitempty"`
	History *History `json:"history,omitempty"`

	// For people.
	Labels      map[string]string `json:"labels,omitempty"`
	Description string            `json:"description,omitempty"`

	// Written by commands, not by people. ScheduleSince is when what makes the ticks was last changed: ScheduleDiffers. ResumedAt
	// is when the last pause ended. No tick before the later of both counts.
	Paused        *Paused    `json:"paused,omitempty"`
	AddedBy       string     `json:"added_by,omitempty"`
	AddedAt       *time.Time `json:"added_at,omitempty"`
	ScheduleSince *time.Time `json:"schedule_since,omitempty"`
	ResumedAt     *time.Time `json:"resumed_at,omitempty"`
}

// Catchup says which of the ticks run that passed while nobody was there to run them.
type Catchup struct {
	// Policy: none of them, the last one, or all, the oldest first.
	Policy Policy `json:"policy,omitempty"`
	// Window is how long ago a tick may have been. It has to be said for all.
	Window Duration `json:"window,omitempty"`
	// Max is how many run at most, of all: the latest.
	Max int `json:"max,omitempty"`
}

// Retry says what becomes of a run that failed.
type Retry struct {
	// Max is how many runs may follow the first, for the same tick.
	Max int `json:"max,omitempty"`
	// Delay is how long the first of them waits. Each further one waits Factor times as long, and MaxDelay at most.
	Delay    Duration `json:"delay,omitempty"`
	Factor   float64  `json:"factor,omitempty"`
	MaxDelay Duration `json:"max_delay,omitempty"`
	// ExitCodes: if any are given, a run that ended otherwise, or by a signal, is not retried.
	ExitCodes []int `json:"exit_codes,omitempty"`
	// OtherNode: on another node than the one where it failed, if there is one.
	OtherNode bool `json:"other_node,omitempty"`
}

// Output says what is kept of what a run writes.
type Output struct {
	// Keep is how much of the end stands in the result.
	Keep Size `json:"keep,omitempty"`
	// File is a path on the node that all of it is appended to. At FileSize it is rotated; FileCount old ones are kept.
	File      string `json:"file,omitempty"`
	FileSize  Size   `json:"file_size,omitempty"`
	FileCount int    `json:"file_count,omitempty"`
}

// History says how many results are kept, of runs that succeeded and of all others, and for how long.
type History struct {
	OK     int      `json:"ok,omitempty"`
	Failed int      `json:"failed,omitempty"`
	TTL    Duration `json:"ttl,omitempty"`
}

// Paused: the job has ticks and does not run. It is there while the pause lasts, or until Until.
type Paused struct {
	By    string     `json:"by,omitempty"`
	Why   string     `json:"why,omitempty"`
	At    time.Time  `json:"at,omitzero"`
	Until *time.Time `json:"until,omitempty"`
}

// Encode is the job as it stands in etcd: one line of JSON without a line end, always the same for the same job. Nothing is added to
// it. Of a job that is valid, Parse makes the same one again.
func (j *Job) Encode() []byte {
	data, _ := encode(j) // of types that encode, if the job is valid
	return data
}

// encode is v in JSON, with no more escapes than JSON needs.
func encode(v any) ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(line.Bytes(), []byte("\n")), err
}
