package fence

import (
	"context"
	"fmt"
	"sync"
)

// Memory guards data in the memory of this process. Its zero value has seen nothing; it must not be copied. It is safe for
// concurrent use.
//
// It keeps what it has seen for as long as the process lives, a few words for each key: a process that starts again has
// lost token and data together. For data that outlives the process it is no guard.
type Memory struct {
	mu   sync.Mutex
	keys map[string]*turn
}

// turn is what one key has.
type turn struct {
	taken chan struct{} // full while a write runs
	seen  uint64        // guarded by the Memory's mutex
}

// Do calls write unless token is below the highest seen of key: then it is an *[ErrFenced]. Writes of one key run one at
// a time, so that none of a lower token is under way when one of a higher token begins; ctx bounds the wait for that,
// and is what write gets. A write must not call Do for its own key.
func (m *Memory) Do(ctx context.Context, key string, token uint64, write func(context.Context) error) error {
	// Who is too late already does not have to wait to hear it.
	if err := Check(key, token, m.Seen(key)); err != nil {
		return err
	}
	t := m.turn(key)
	select {
	case t.taken <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait for other writes of %q: %w", key, context.Cause(ctx))
	}
	defer func() { <-t.taken }()
	if err := m.see(t, key, token); err != nil {
		return err
	}
	return write(ctx)
}

// Seen is the highest token seen of key; 0 for none.
func (m *Memory) Seen(key string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.keys[key]; t != nil {
		return t.seen
	}
	return 0
}

func (m *Memory) turn(key string) *turn {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil {
		m.keys = map[string]*turn{}
	}
	t := m.keys[key]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		m.keys[key] = t
	}
	return t
}

// see judges a token whose turn it is, and stores it.
func (m *Memory) see(t *turn, key string, token uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := Check(key, token, t.seen); err != nil {
		return err
	}
	t.seen = token
	return nil
}
