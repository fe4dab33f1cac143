package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxTTL is the longest lease that is asked for. etcd grants leases of centuries; a hold whose holder died
// would then block for as long.
const MaxTTL = 24 * time.Hour

// duration is a flag that holds a duration within bounds.
type duration struct {
	to       *time.Duration
	accepts  string
	accepted func(time.Duration) bool
}

// Duration makes a flag value for a duration, with what is accepted in words.
func Duration(to *time.Duration, accepts string, accepted func(time.Duration) bool) duration {
	return duration{to, accepts, accepted}
}

// Positive accepts what is longer than nothing.
func Positive(d time.Duration) bool { return d > 0 }

// NotNegative accepts zero too.
func NotNegative(d time.Duration) bool { return d >= 0 }

// leaseTime accepts what etcd can count in, up to MaxTTL.
func leaseTime(d time.Duration) bool { return d >= time.Second && d <= MaxTTL && d%time.Second == 0 }

func (d duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil || !d.accepted(v) {
		return errors.New("want " + d.accepts)
	}
	*d.to = v
	return nil
}

// String is what help shows as the default. "0" is what the flag library takes for none; "0s" it would show.
func (d duration) String() string {
	switch {
	case d.to == nil:
		return ""
	case *d.to == 0:
		return "0"
	}
	return short(*d.to)
}

func (d duration) Type() string    { return "duration" }
func (d duration) Accepts() string { return d.accepts }

// short is a duration without the zero units that Go appends: 5m, not 5m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// choice is a flag that holds one word of a few.
type choice struct {
	to    *string
	words []string
}

// Choice makes a flag value for one of words; the first is the default.
func Choice(to *string, words ...string) choice {
	*to = words[0]
	return choice{to, words}
}

func (c choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return errors.New("want " + c.Accepts())
	}
	*c.to = s
	return nil
}

func (c choice) String() string {
	if c.to == nil {
		return ""
	}
	return *c.to
}

func (c choice) Type() string    { return strings.Join(c.words, "|") }
func (c choice) Accepts() string { return strings.Join(c.words, " or ") }

// endpointList is the flag that says where etcd is.
type endpointList struct{ to *[]string }

func (e endpointList) Set(s string) error {
	list, err := parseEndpoints(s)
	if err != nil {
		return fmt.Errorf("%w; want %s", err, e.Accepts())
	}
	*e.to = list
	return nil
}

func (e endpointList) String() string {
	if e.to == nil {
		return ""
	}
	return strings.Join(*e.to, ",")
}

func (e endpointList) Type() string { return "list" }

// Redact leaves out what stands where a URL has a password.
func (e endpointList) Redact(s string) string {
	at := strings.LastIndex(s, "@")
	if at < 0 {
		return s
	}
	return "..." + s[at:]
}

func (e endpointList) Accepts() string {
	return "host:port, http(s)://host:port or unix:///path, several joined by commas"
}
