package plan

import (
	"slices"

	"github.com/go-coord/coord/internal/cron/record"
)

// Picture is what etcd said of one job, or of all of them, at one revision: for who looks, and decides nothing.
type Picture struct {
	Rev int64
	// Spec is the job as it stands in etcd, and SpecRev its mod revision; 0: there is no such job. Both are of a picture of one job.
	Spec    []byte
	SpecRev int64
	// Cursors are those of the job, by host; that of a job that runs on one of them is "".
	Cursors map[string]record.Cursor
	Starts  []Pictured
	Asked   []PicturedWant
	Peers   []Peer // by host
	// Drains are those of all hosts, the ones included that are not registered.
	Drains   map[string]record.Stop
	Pause    record.Stop // By is "" where the cluster never was paused
	PauseRev int64
}

// Pictured is a start whose end is not known.
type Pictured struct {
	Open
	Job  string
	Kill *record.Kill // somebody asked for its end; nil: nobody
}

// PicturedWant is a request that was not met yet.
type PicturedWant struct {
	Want
	Job string
}

// Start finds a start of a job; nil: there is none.
func (p *Picture) Start(id record.ID) *Pictured {
	if i := slices.IndexFunc(p.Starts, func(s Pictured) bool { return s.ID == id }); i >= 0 {
		return &p.Starts[i]
	}
	return nil
}

// Running is how many starts a host has whose end is not known.
func (p *Picture) Running(host string) (n int) {
	for i := range p.Starts {
		if p.Starts[i].Host == host {
			n++
		}
	}
	return n
}

// Peer finds a node that is registered; nil: it is not.
func (p *Picture) Peer(host string) *Peer {
	if i := slices.IndexFunc(p.Peers, func(one Peer) bool { return one.Host == host }); i >= 0 {
		return &p.Peers[i]
	}
	return nil
}
