package coord

import "fmt"

// HostEventKind says what an event is about.
type HostEventKind int

// Kinds of events. A watcher sends HostUp and HostDown; the others only where [WatcherOptions].Extended asks for
// them, so that code which knows of two kinds never meets a third.
const (
	// HostUp: the host is there, and was not.
	HostUp HostEventKind = iota
	// HostDown: the host is gone, and was there. Metadata is what it last said.
	HostDown
	// HostUpdate: the host is there as before and says something else of itself.
	HostUpdate
	// SnapshotDone: the hosts that were there when the watcher began have all been told. Sent once.
	SnapshotDone
	// ViewStale: etcd has not proven for a while that what was told is still so. Err says what is wrong.
	ViewStale
	// ViewFresh: it has again, and what changed meanwhile was told before this.
	ViewFresh
)

func (k HostEventKind) String() string {
	switch k {
	case HostUp:
		return "up"
	case HostDown:
		return "down"
	case HostUpdate:
		return "update"
	case SnapshotDone:
		return "snapshot-done"
	case ViewStale:
		return "stale"
	case ViewFresh:
		return "fresh"
	}
	return fmt.Sprintf("HostEventKind(%d)", int(k))
}

// DownReason says how a host went down, as far as its key tells.
type DownReason int

const (
	// HostExpired: the key went without a word from the host. Its lease ran out or was revoked, or somebody
	// deleted the key.
	HostExpired DownReason = iota + 1
	// HostStopped: the host had said that it stops.
	HostStopped
	// HostReplaced: nobody saw the host go, but the key is another life's: it was away while the watcher could
	// not look, and started anew. The next event of this host is its HostUp.
	HostReplaced
)

func (r DownReason) String() string {
	switch r {
	case 0:
		return ""
	case HostExpired:
		return "expired"
	case HostStopped:
		return "stopped"
	case HostReplaced:
		return "replaced"
	}
	return fmt.Sprintf("DownReason(%d)", int(r))
}

// HostEvent is what a [HostWatcher] tells.
type HostEvent struct {
	Kind     HostEventKind
	HostUUID string       // the last element of the host's key; hostile until escaped
	Metadata HostMetadata // as last seen; of a value that cannot be read, the UUID alone

	// Reason says how the host went; of HostDown only.
	Reason DownReason
	// Revision is etcd's when what is told happened, or was found out.
	Revision int64
	// Incarnation is the create revision of the host's key: another one for each life of the key.
	Incarnation int64
	// Err says what keeps etcd from answering; of ViewStale only.
	Err error
}
