package view

import (
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// States of a host.
const (
	Up       State = "up"
	Stopping State = "stopping" // it has said that it goes
	Down     State = "down"
)

// Host is a host that is up, or was.
type Host struct {
	State    State
	UUID     string // hostile until escaped, as all that it says
	Hostname string
	Version  string
	Since    time.Time     // by its own clock; zero: not known
	Rev      int64         // create revision of its key: another one for each life
	Lease    int64         // 0: its key is on none
	Left     time.Duration // Unknown until somebody has asked
}

// Line is the host as a program reads it.
func (h Host) Line() Line {
	return Line{
		Kind: hold.KindHost, Name: h.UUID, State: h.State, Host: h.Hostname, Started: moment(h.Since), Rev: uint64(h.Rev),
		Lease: lease(h.Lease), TTLLeft: left(h.Left), Since: moment(h.Since),
	}
}
