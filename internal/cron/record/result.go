package record

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// Result is how one start ended, or why there was none. It is public: "conch cron history -o json" prints it.
type Result struct {
	Job       string `json:"job"`
	Tick      int64  `json:"tick"`            // unix seconds: when it was due
	From      int64  `json:"from,omitempty"`  // of a range that was missed or skipped: its first tick; Tick is the last
	Ticks     int    `json:"ticks,omitempty"` // of such a range: how many, at most MaxTicks are counted
	Kind      Kind   `json:"kind"`
	Attempt   int    `json:"attempt"`
	Status    Status `json:"status"`
	Reason    Reason `json:"reason"`
	Detail    string `json:"detail,omitempty"` // for people: one line
	By        string `json:"by,omitempty"`     // who asked for it, and why, where somebody did
	Host      string `json:"host"`
	Pid       int    `json:"pid,omitempty"`
	Rev       int64  `json:"rev"` // the fencing token: the revision of the claim
	SpecRev   int64  `json:"spec_rev"`
	ClaimedAt Stamp  `json:"claimed_at,omitzero"`
	StartedAt Stamp  `json:"started_at,omitzero"`
	EndedAt   Stamp  `json:"ended_at"`
	LateMS    int64  `json:"late_ms"` // from when it was due to its start
	WallMS    int64  `json:"wall_ms"`
	UserMS    int64  `json:"user_ms"`
	SysMS     int64  `json:"sys_ms"`
	MaxRSS    int64  `json:"max_rss"` // bytes
	ExitCode  int    `json:"exit_code"`
	Signal    string `json:"signal"`
	Output    Output `json:"output"`
	RunID     string `json:"run_id"` // <job>/<id>
}

// MaxTicks is how far the ticks of a range are counted.
const MaxTicks = 100_000

// Output is the end of what a run wrote to stdout and stderr.
type Output struct {
	Tail      string `json:"tail"`
	Bytes     int64  `json:"bytes"` // of all of it
	Truncated bool   `json:"truncated"`
}

// Stamp is a moment with milliseconds, in UTC. Its JSON is RFC 3339.
type Stamp struct{ time.Time }

// StampOf cuts to milliseconds.
func StampOf(t time.Time) Stamp { return Stamp{t.UTC().Truncate(time.Millisecond)} }

// MarshalJSON writes three digits after the second.
func (s Stamp) MarshalJSON() ([]byte, error) {
	return []byte(s.UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}

// ID is the last element of the key that it stands at.
func (r *Result) ID() (ID, error) {
	_, id, err := ParseKey("", r.RunID)
	return id, err
}

// limit is the size above which a value is not parsed: nothing of ours comes near it, not even an output that is all escapes.
const limit = 1 << 20

// Encode gives one line of JSON. Text that is no UTF-8 has U+FFFD in its place.
func Encode(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // records are structs of strings and numbers: nothing that the encoder refuses
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// Decode reads a record. ok is false for what is none: wrong types, no JSON, no UTF-8, or far too much of it. Fields that are
// not known here are ignored, so that a newer daemon's records can be read.
func Decode[T any](value []byte) (v T, ok bool) {
	if len(value) > limit || !utf8.Valid(value) {
		return v, false
	}
	err := json.Unmarshal(value, &v)
	if err != nil {
		var none T
		return none, false
	}
	return v, true
}
