package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// flushLong is longer than any flush takes.
const flushLong = time.Minute

// gate is a writer that blocks until it is opened.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	got  bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.Write(p)
}

func (g *gate) text() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.String()
}

func TestASinkPassesLinesOnInOrder(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	s := NewSink(&got)
	line := []byte("1\n")
	for i := range 3 {
		line[0] = byte('1' + i) // the caller may use its buffer again
		if n, err := s.Write(line); n != 2 || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	s.Close(flushLong)
	if !s.Close(flushLong) {
		t.Error("the sink did not close")
	}
	if got.String() != "1\n2\n3\n" {
		t.Errorf("got %q", got.String())
	}
	if n, err := s.Write(line); n != 2 || err != nil {
		t.Errorf("Write after Close = %d, %v", n, err)
	}
}

func TestASinkNeverBlocksAndCountsWhatItDropped(t *testing.T) {
	t.Parallel()
	g := &gate{open: make(chan struct{})}
	s := NewSink(g)
	const extra = 10
	// One line is with the writer at most, so that at least extra-1 find no room.
	for i := range sinkLines + extra {
		fmt.Fprintf(s, "line %d\n", i)
	}
	if s.Close(time.Millisecond) {
		t.Fatal("Close reports success although nothing was read")
	}
	close(g.open)
	if !s.Close(flushLong) {
		t.Fatal("Close gave up although the reader came back")
	}
	if !strings.HasPrefix(g.text(), "line 0\n") || !strings.Contains(g.text(), "lines dropped") {
		t.Errorf("got %.200q", g.text())
	}
}

func TestASinkSaysInJSONWhatItDroppedOfJSON(t *testing.T) {
	t.Parallel()
	g := &gate{open: make(chan struct{})}
	s := NewSink(g)
	for i := range sinkLines + 10 {
		fmt.Fprintf(s, "{\"line\":%d}\n", i)
	}
	close(g.open)
	if !s.Close(flushLong) {
		t.Fatal("Close gave up although everything is read")
	}
	if !strings.Contains(g.text(), "lines dropped") {
		t.Errorf("got %.200q", g.text())
	}
	for line := range strings.Lines(g.text()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("got %q", line)
		}
	}
}

func TestAReaderThatIsGoneCostsNothing(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	r.CloseWithError(errors.New("gone"))
	s := NewSink(w)
	fmt.Fprintln(s, "nobody reads this")
	if !s.Close(flushLong) {
		t.Error("the sink waits for a reader that is gone")
	}
}
