package fence

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
)

var errWrite = errors.New("the write failed")

// guard is what Memory and File have in common, of one key.
type guard interface {
	Do(ctx context.Context, token uint64, write func(context.Context) error) error
}

// ofKey is one key of a Memory.
type ofKey struct {
	*Memory
	key string
}

func (m ofKey) Do(ctx context.Context, token uint64, write func(context.Context) error) error {
	return m.Memory.Do(ctx, m.key, token, write)
}

// eachGuard runs a test for both.
func eachGuard(t *testing.T, test func(t *testing.T, g guard)) {
	t.Helper()
	t.Run("Memory", func(t *testing.T) {
		t.Parallel()
		test(t, ofKey{&Memory{}, "k"})
	})
	t.Run("File", func(t *testing.T) {
		t.Parallel()
		file, err := NewFile(filepath.Join(t.TempDir(), "token"))
		if err != nil {
			t.Fatal(err)
		}
		test(t, file)
	})
}

func TestLowerIsRefusedAndEqualAccepted(t *testing.T) {
	t.Parallel()
	eachGuard(t, func(t *testing.T, g guard) {
		var wrote []uint64
		for _, row := range []struct {
			token uint64
			want  error
		}{
			{33, nil}, {33, nil}, {32, &ErrFenced{Have: 32, Seen: 33}}, {40, nil}, {39, &ErrFenced{Have: 39, Seen: 40}},
			{40, nil}, {0, ErrInvalid}, {1<<64 - 1, nil}, {40, &ErrFenced{Have: 40, Seen: 1<<64 - 1}},
		} {
			err := g.Do(t.Context(), row.token, func(context.Context) error {
				wrote = append(wrote, row.token)
				return nil
			})
			if !errors.Is(err, row.want) {
				t.Errorf("%d: %v, want %v", row.token, err, row.want)
			}
		}
		if want := []uint64{33, 33, 40, 40, 1<<64 - 1}; !slices.Equal(wrote, want) {
			t.Errorf("wrote %d, want %d", wrote, want)
		}
	})
}

func TestATokenIsSeenThoughItsWriteFails(t *testing.T) {
	t.Parallel()
	eachGuard(t, func(t *testing.T, g guard) {
		if err := g.Do(t.Context(), 34, func(context.Context) error { return errWrite }); !errors.Is(err, errWrite) {
			t.Errorf("%v", err)
		}
		never := func(context.Context) error { t.Error("it wrote"); return nil }
		if err := g.Do(t.Context(), 33, never); !errors.Is(err, &ErrFenced{Have: 33, Seen: 34}) {
			t.Errorf("%v", err)
		}
	})
}

func TestAWriteThatPanicsLetsTheNextIn(t *testing.T) {
	t.Parallel()
	eachGuard(t, func(t *testing.T, g guard) {
		func() {
			defer func() { _ = recover() }()
			_ = g.Do(t.Context(), 33, func(context.Context) error { panic("in the middle") })
		}()
		if err := g.Do(t.Context(), 34, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}

// A writer that was paused inside its write holds up its successor: if that went ahead, the paused one would write after it.
func TestASuccessorWaitsForAWriteThatIsUnderWay(t *testing.T) {
	t.Parallel()
	eachGuard(t, func(t *testing.T, g guard) {
		synctest.Test(t, func(t *testing.T) {
			if m, ok := g.(ofKey); ok {
				g = ofKey{&Memory{}, m.key} // of this bubble
			}
			resume, order, done := make(chan struct{}), make(chan uint64, 3), make(chan error, 2)
			go func() {
				done <- g.Do(t.Context(), 33, func(context.Context) error {
					order <- 0
					<-resume
					order <- 33
					return nil
				})
			}()
			synctest.Wait()
			go func() {
				done <- g.Do(t.Context(), 34, func(context.Context) error { order <- 34; return nil })
			}()
			synctest.Wait() // it waits now, or has written
			close(resume)
			for range 2 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			if got := []uint64{<-order, <-order, <-order}; !slices.Equal(got, []uint64{0, 33, 34}) {
				t.Errorf("order %d: the successor did not wait", got)
			}
		})
	})
}

func TestTheWaitForAnotherEndsWithItsContext(t *testing.T) {
	t.Parallel()
	eachGuard(t, func(t *testing.T, g guard) {
		gaveUp := errors.New("gave up")
		err := g.Do(t.Context(), 33, func(context.Context) error {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(gaveUp)
			return g.Do(ctx, 34, func(context.Context) error { t.Error("two at a time"); return nil })
		})
		if !errors.Is(err, gaveUp) {
			t.Errorf("%v", err)
		}
	})
}

func TestWhoIsTooLateAlreadyDoesNotWait(t *testing.T) {
	t.Parallel()
	var m Memory
	err := m.Do(t.Context(), "k", 34, func(ctx context.Context) error {
		return m.Do(ctx, "k", 33, func(context.Context) error { return nil })
	})
	if !errors.Is(err, &ErrFenced{Have: 33, Seen: 34}) {
		t.Errorf("%v", err)
	}
}

// Who was not too late when it came may be when its turn comes.
func TestATokenIsJudgedWhenItsTurnComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m Memory
		resume, late := make(chan struct{}), make(chan error, 1)
		first := make(chan error, 1)
		go func() { first <- m.Do(t.Context(), "k", 33, func(context.Context) error { <-resume; return nil }) }()
		synctest.Wait()
		go func() { late <- m.Do(t.Context(), "k", 33, func(context.Context) error { return errWrite }) }()
		synctest.Wait()
		// Somebody else is let in between: as if it had been woken first.
		m.mu.Lock()
		m.keys["k"].seen = 34
		m.mu.Unlock()
		close(resume)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if err := <-late; !errors.Is(err, &ErrFenced{Have: 33, Seen: 34}) {
			t.Errorf("%v", err)
		}
	})
}

func TestKeysOfAMemoryAreIndependent(t *testing.T) {
	t.Parallel()
	var m Memory
	err := m.Do(t.Context(), "a", 34, func(ctx context.Context) error {
		return m.Do(ctx, "b", 33, func(context.Context) error { return nil })
	})
	if err != nil || m.Seen("a") != 34 || m.Seen("b") != 33 || m.Seen("c") != 0 {
		t.Errorf("%v; seen %d, %d, %d", err, m.Seen("a"), m.Seen("b"), m.Seen("c"))
	}
	if err := m.Do(t.Context(), "", 1, nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("%v", err)
	}
}
