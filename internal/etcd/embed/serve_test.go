package embed

import (
	"context"
	"testing"
	"time"
)

func TestServeKeepsTheMemberAndTakesItsPlace(t *testing.T) {
	t.Parallel()
	s := shared(t, 100*time.Millisecond)
	type word struct {
		endpoint string
		ours     bool
	}
	serve := func(ctx context.Context) (<-chan word, <-chan error) {
		words, done := make(chan word, 8), make(chan error, 1)
		go func() { done <- s.Serve(ctx, func(endpoint string, ours bool) { words <- word{endpoint, ours} }) }()
		return words, done
	}
	next := func(words <-chan word) word {
		t.Helper()
		select {
		case w := <-words:
			return w
		case <-time.After(limit):
			t.Fatal("nothing served")
			return word{}
		}
	}

	// The first serves; the second attends; and an Ensure uses what there is.
	first, stop := context.WithCancel(t.Context())
	words1, done1 := serve(first)
	w := next(words1)
	if !w.ours {
		t.Fatal("the first found a member")
	}
	second, stop2 := context.WithCancel(t.Context())
	words2, done2 := serve(second)
	if w := next(words2); w.ours {
		t.Fatal("the second is a member too")
	}
	if endpoint, started := ensure(t, s); started || endpoint != w.endpoint {
		t.Fatalf("endpoint %s, started %v", endpoint, started)
	}
	put(t, w.endpoint, "k", "v")

	// The first ends: the second takes its place, with the data.
	stop()
	if err := <-done1; err != nil {
		t.Fatal(err)
	}
	for w = next(words2); !w.ours; w = next(words2) {
	}
	if got := get(t, w.endpoint, "k"); got != "v" {
		t.Fatalf("k = %q", got)
	}
	stop2()
	if err := <-done2; err != nil {
		t.Fatal(err)
	}
}

func TestServeKeepsAStartedMemberAlive(t *testing.T) {
	t.Parallel()
	s := shared(t, 500*time.Millisecond)
	c := connect(t, &s)
	ctx, stop := context.WithCancel(t.Context())
	attending, done := make(chan bool, 8), make(chan error, 1)
	go func() { done <- s.Serve(ctx, func(_ string, ours bool) { attending <- ours }) }()
	if ours := <-attending; ours {
		t.Error("a second member was started")
	}
	c.Close()
	<-time.After(3 * s.Grace) // the member's timer is what is tested
	if _, started := ensure(t, s); started {
		t.Error("the member ended although it was attended")
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	awaitEnd(t, s)
}
