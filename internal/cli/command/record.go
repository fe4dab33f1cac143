package command

import (
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
)

// openHold is what an open record says of its hold, for people: all of it is hostile until escaped. See
// docs/keys.md.
type openHold struct {
	lease  int64 // 0: the record cannot be read
	ttl    time.Duration
	holder string
	at     time.Time
	mod    int64
}

// readOpen reads an open record, as whoever settles it does. What cannot be read is some hold's all the same.
func readOpen(kv *mvccpb.KeyValue) *openHold {
	r := coord.DecodeRecord(kv, 0)
	return &openHold{lease: int64(r.Lease), ttl: r.TTL, holder: r.Holder, at: r.At, mod: kv.ModRevision}
}

// of reports whether the record is about the hold of that candidate for that office, so that nobody settles.
func (o *openHold) of(office string, first coord.Candidate) bool {
	return o.lease != 0 && first.Key == hold.ElectKey(office, o.lease).String() && first.Token <= uint64(o.mod)
}

// standingText says in a few words how the first of a queue stands; unsettled is what it waits for, nil: it leads.
func standingText(first coord.Candidate, unsettled *openHold) string {
	h, _ := hold.DecodeHolder([]byte(first.Identity))
	text := fmt.Sprintf("%s, token %d", h, first.Token)
	switch {
	case unsettled != nil:
		return "next is " + text + ", which waits for the end of " + unsettled.whose()
	case h.Fenced:
		return "left by " + text + ", whose on-lose failed: nobody is at work, and it is free when the lease is over"
	}
	return "held by " + text
}

// whose says whose hold an open record is about.
func (o *openHold) whose() string {
	if o.lease == 0 {
		return "an earlier hold, whose record cannot be read"
	}
	h, _ := hold.DecodeHolder([]byte(o.holder))
	return fmt.Sprintf("an earlier hold: %s, lease %s", h, hold.FormatLease(o.lease))
}

// text is one line that says why the next holder settles.
func (o *openHold) text() string {
	if o.lease == 0 {
		return "unsettled: an earlier hold left a record that cannot be read; the next holder waits for its own ttl\n"
	}
	h, _ := hold.DecodeHolder([]byte(o.holder))
	return fmt.Sprintf("unsettled: %s, lease %s, has not said that nothing of it is left; the next holder waits for that, %v at most\n",
		h, hold.FormatLease(o.lease), o.ttl)
}

// wireOpen is the JSON of an open record that makes the next holder settle.
type wireOpen struct {
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Cmd   string `json:"cmd"`
	Lease string `json:"lease"`  // "": the record cannot be read
	TTLMS int64  `json:"ttl_ms"` // how long the next holder waits at most; 0: its own ttl
	At    string `json:"at"`
	Value string `json:"value,omitempty"`
}

func (o *openHold) wire() *wireOpen {
	if o.lease == 0 {
		return &wireOpen{}
	}
	w := &wireOpen{Lease: hold.FormatLease(o.lease), TTLMS: o.ttl.Milliseconds(), At: moment(o.at)}
	w.Host, w.PID, w.Cmd, w.Value = holderFields(o.holder)
	return w
}

// lastHold is the hold before a vacancy, and how it ended.
type lastHold struct {
	token  uint64
	holder string   // identity
	how    hold.End // "": nobody has said
	at     time.Time
}

// howLimit is more bytes than any word for an end of ours has.
const howLimit = 20

func ofEnd(e coord.Ended) *lastHold {
	how := hold.End(e.How)
	if len(how) > howLimit {
		how = hold.End(hold.EscapeCut(string(how), howLimit))
	}
	return &lastHold{token: e.Token, holder: e.Holder, how: how, at: e.At}
}

// text goes behind "vacant"; nothing for no hold.
func (l *lastHold) text() string {
	if l == nil {
		return ""
	}
	h, _ := hold.DecodeHolder([]byte(l.holder))
	how := "which has not said how it ended"
	if l.how != "" {
		how = hold.EscapeCut(string(l.how), 2*howLimit) + " " + l.at.Format(time.RFC3339)
	}
	return fmt.Sprintf("; last held by %s, token %d, %s", h, l.token, how)
}

// wireLast is the JSON of a last hold.
type wireLast struct {
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Cmd   string `json:"cmd"`
	Rev   uint64 `json:"rev"`
	How   string `json:"how"` // "": nobody has said
	At    string `json:"at"`
	Value string `json:"value,omitempty"`
}

func (l *lastHold) wire() *wireLast {
	if l == nil {
		return nil
	}
	w := &wireLast{Rev: l.token, How: string(l.how), At: moment(l.at)}
	w.Host, w.PID, w.Cmd, w.Value = holderFields(l.holder)
	return w
}

// moment is a time as JSON has it; nothing for none.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// holderFields are the parts of an identity as JSON has them; value where it is no holder of ours, escaped.
func holderFields(identity string) (host string, pid int, cmd, value string) {
	h, ours := hold.DecodeHolder([]byte(identity))
	if !ours {
		return "", 0, "", h.String()
	}
	return h.Host, h.PID, h.Cmd, ""
}
