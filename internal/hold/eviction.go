package hold

import (
	"encoding/json"
	"fmt"
	"time"
)

// Eviction is the request to a holder to leave: the value of its evict key, as one line of JSON.
//
// That the key is there is what counts. Whoever may write it can write anything there: the fields of a decoded
// Eviction are hostile text until they went through Escape.
type Eviction struct {
	Host     string // where it was asked for
	PID      int
	At       time.Time     // whole seconds; for people
	Cooldown time.Duration // how long the wrapper is not to campaign again; milliseconds count
}

// CooldownMost is the longest cooldown: a wrapper that is asked for more keeps to this.
const CooldownMost = 24 * time.Hour

// wireEviction is the layout in etcd.
type wireEviction struct {
	Host       string    `json:"host"`
	PID        int       `json:"pid"`
	At         time.Time `json:"at"`
	CooldownMS int64     `json:"cooldown_ms,omitempty"`
}

// Encode gives the one line of JSON, without a line end. It cannot fail.
func (e Eviction) Encode() string {
	raw, _ := json.Marshal(wireEviction{e.Host, e.PID, e.At.UTC().Truncate(time.Second), e.Cooldown.Milliseconds()})
	return string(raw)
}

// DecodeEviction reads the value of an evict key. One that cannot be read asks all the same, and says no more.
func DecodeEviction(value []byte) Eviction {
	var w wireEviction
	if len(value) > holderLimit || json.Unmarshal(value, &w) != nil {
		return Eviction{}
	}
	e := Eviction{Host: cut(w.Host, cmdLimit), PID: w.PID, At: w.At.UTC()}
	if most := CooldownMost.Milliseconds(); w.CooldownMS > 0 {
		e.Cooldown = time.Duration(min(w.CooldownMS, most)) * time.Millisecond
	}
	return e
}

// Error says who asks, for people and safe on a terminal.
func (e Eviction) Error() string {
	if e.Host == "" || e.PID <= 0 {
		return ErrEvicted.Error() + ": an operator asked for it"
	}
	return fmt.Sprintf("%v: asked for by %s pid %d", ErrEvicted, Escape(e.Host), e.PID)
}

// Unwrap makes it an ErrEvicted.
func (e Eviction) Unwrap() error { return ErrEvicted }
