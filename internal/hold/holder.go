package hold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// cmdLimit is how much of a command line, or of a value that cannot be read, is kept: bytes.
	cmdLimit = 256
	// holderLimit is the size above which a value is not even parsed: nothing of ours comes near it.
	holderLimit = 64 << 10
)

// Holder says who holds or waits. It is the value of a candidate's key, as one line of JSON.
//
// It informs people and decides nothing. Whoever may write to etcd can write anything there: the fields
// of a decoded Holder are hostile text until they went through Escape.
type Holder struct {
	Host    string
	PID     int
	Started time.Time // whole seconds
	Cmd     string    // arguments joined by spaces, at most 256 bytes; empty where it was not to be told
	Fenced  bool      // its on-lose failed: it has ended, and left the hold to its lease

	raw string // what could not be decoded, for String
}

// wireHolder is the layout in etcd.
type wireHolder struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Started string `json:"started"`
	Cmd     string `json:"cmd,omitempty"`
	State   string `json:"state,omitempty"` // "fenced", or not there
}

const stateFenced = "fenced"

// NewHolder describes this process. argv may hold any bytes; nil leaves the command out.
func NewHolder(host string, pid int, started time.Time, argv []string) Holder {
	return Holder{
		Host:    cut(strings.ToValidUTF8(host, "\uFFFD"), cmdLimit),
		PID:     pid,
		Started: started.UTC().Truncate(time.Second),
		Cmd:     joinCmd(argv),
	}
}

// joinCmd joins argv by spaces up to the limit. Bytes that are no UTF-8 become U+FFFD first, so that the
// limit holds for what a reader gets.
func joinCmd(argv []string) string {
	var b strings.Builder
	for i, a := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strings.ToValidUTF8(cut(a, cmdLimit+utf8.UTFMax), "\uFFFD"))
		if b.Len() > cmdLimit {
			break
		}
	}
	return cut(b.String(), cmdLimit)
}

// Encode gives the one line of JSON, without a line end. It cannot fail.
func (h Holder) Encode() string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	w := wireHolder{Host: h.Host, PID: h.PID, Started: h.Started.UTC().Format(time.RFC3339), Cmd: h.Cmd}
	if h.Fenced {
		w.State = stateFenced
	}
	_ = enc.Encode(w) // a struct of strings and an int has no value that the encoder refuses
	return strings.TrimSuffix(b.String(), "\n")
}

// DecodeHolder reads the value of a candidate's key. ok is false for everything that is not a holder of
// ours: another client's text, wrong types, a missing host or pid, more than 64 KiB. The Holder then has
// no fields, and String shows the beginning of the value. Fields that it does not know are ignored.
func DecodeHolder(value []byte) (h Holder, ok bool) {
	bad := Holder{raw: EscapeCut(string(value[:min(len(value), cmdLimit+1)]), cmdLimit)}
	if len(value) > holderLimit {
		return bad, false
	}
	var w wireHolder
	if err := json.Unmarshal(value, &w); err != nil || w.Host == "" || w.PID <= 0 {
		return bad, false
	}
	started, err := time.Parse(time.RFC3339, w.Started)
	if err != nil {
		return bad, false
	}
	return Holder{Host: cut(w.Host, cmdLimit), PID: w.PID, Started: started.UTC(), Cmd: cut(w.Cmd, cmdLimit),
		Fenced: w.State == stateFenced}, true
}

// String is for people and safe on a terminal: host, pid and command, or the escaped beginning of a value
// that is no holder of ours.
func (h Holder) String() string {
	switch {
	case h.Host == "" && h.PID == 0:
		return h.raw
	case h.Cmd == "":
		return fmt.Sprintf("%s pid %d", Escape(h.Host), h.PID)
	}
	return fmt.Sprintf("%s pid %d (%s)", Escape(h.Host), h.PID, Escape(h.Cmd))
}
