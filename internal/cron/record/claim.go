package record

// Kind says why a start came about.
type Kind string

// Kinds.
const (
	Scheduled Kind = "scheduled" // its tick
	Late      Kind = "late"      // its tick, more than a second after it and within the deadline
	CatchUp   Kind = "catchup"   // its tick, which was missed
	Retry     Kind = "retry"     // the start before it failed, or was lost
	Manual    Kind = "manual"    // somebody asked for it
	Backfill  Kind = "backfill"  // somebody asked for a tick of the past
	Queued    Kind = "queued"    // the run before it was waited for
	Replace   Kind = "replace"   // the run before it was ended for it
)

// Decision is what a claim decided.
type Decision string

// Decisions.
const (
	DecideRun   Decision = "run"
	DecideSkip  Decision = "skip"
	DecideMiss  Decision = "miss"
	DecideQueue Decision = "queue" // a want stands for it
)

// Fire is a claim: the value of a fire key. Who wins says so once, and nothing is added later.
type Fire struct {
	Nonce    string   `json:"nonce"`
	Host     string   `json:"host"`
	Decision Decision `json:"decision"`
	Kind     Kind     `json:"kind,omitempty"`
	Reason   Reason   `json:"reason,omitempty"`
	Attempt  int      `json:"attempt,omitempty"` // counts from 1
	SpecRev  int64    `json:"spec_rev"`
	At       int64    `json:"at_ms"` // by the claiming host's clock, in unix milliseconds
}

// Open is a start whose end is not proven, and the value of its run marker too: what a peer needs to say how it ended.
type Open struct {
	Nonce   string `json:"nonce"`
	Host    string `json:"host"`
	Lease   int64  `json:"lease,string"` // of the daemon's session
	TTL     int64  `json:"ttl_ms"`       // of that lease: how long a child can outlive the marker
	Kind    Kind   `json:"kind"`
	Attempt int    `json:"attempt"`
	SpecRev int64  `json:"spec_rev"`
	At      int64  `json:"at_ms"` // of the claim
	By      string `json:"by,omitempty"`
}

// Cursor is the value of a cursor.
type Cursor struct {
	Tick int64  `json:"tick"`
	Host string `json:"host"` // who moved it, and prefer: sticky goes by that
}

// Want asks for a start that is no tick of its own, or no longer: the first node that may takes it.
type Want struct {
	Kind    Kind   `json:"kind"`
	Attempt int    `json:"attempt"`
	After   int64  `json:"after_ms,omitempty"` // not before, unix milliseconds
	Until   int64  `json:"until_ms,omitempty"` // not after; 0: it waits as long as it takes
	By      string `json:"by,omitempty"`       // who asked for it, and why: whatever came of it says so too
	Not     string `json:"not_host,omitempty"` // another node is better
}
