package coord

import "fmt"

// LivenessState is how a registration stands.
type LivenessState int

const (
	// LivenessHealthy: the key is there, as far as is known. It proves nothing: see [HostLiveness.Context].
	LivenessHealthy LivenessState = iota
	// LivenessHealing: the key was lost, or etcd is silent; it is put again as soon as that can be done.
	LivenessHealing
	// LivenessDuplicate: as healing, but another process is registered under this UUID. Its key is left
	// alone, and waited for.
	LivenessDuplicate
	// LivenessStopped: it is over.
	LivenessStopped
)

func (s LivenessState) String() string {
	if s < LivenessHealthy || s > LivenessStopped {
		return fmt.Sprintf("LivenessState(%d)", int(s))
	}
	return [...]string{"healthy", "healing", "duplicate", "stopped"}[s]
}

// LivenessChange is a state that was entered.
type LivenessChange struct {
	State LivenessState
	// Err is why: what the key was lost by, the *[DuplicateHostError] that is in the way, or what ended it,
	// such as [ErrClosed]. nil where it is healthy.
	Err error
}

// State is how the registration stands. It is informative: nothing may depend on it that must not be done
// twice.
func (h *HostLiveness) State() LivenessState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state
}

// Changes yields states that are entered, beginning with the first one that is not healthy. A slow reader gets
// the newest only. There is one channel: of several readers each change reaches one. It is closed by Stop,
// after LivenessStopped.
func (h *HostLiveness) Changes() <-chan LivenessChange { return h.change }

// say enters a state, and reports whether it is another one. But for a healthy one there is no registration.
func (h *HostLiveness) say(s LivenessState, why error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state == LivenessStopped {
		return false // it ended by itself before it was stopped, and said why
	}
	was := h.state
	h.state, h.why = s, why
	if s != LivenessHealthy {
		h.on = nil
	}
	if s == was {
		return false
	}
	select {
	case <-h.change: // nobody has read it
	default:
	}
	h.change <- LivenessChange{State: s, Err: why}
	return true
}
