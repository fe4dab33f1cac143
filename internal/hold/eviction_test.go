package hold

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAnEvictionSurvivesItsEncoding(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 12, 10, 15, 0, 0, time.UTC)
	for _, e := range []Eviction{
		{Host: "node2", PID: 4242, At: at},
		{Host: "node2", PID: 4242, At: at, Cooldown: 1500 * time.Millisecond},
	} {
		if got := DecodeEviction([]byte(e.Encode())); got != e {
			t.Errorf("%s gives %+v, want %+v", e.Encode(), got, e)
		}
	}
	if got, want := (Eviction{Host: "node2", PID: 4242, At: at}).Encode(), `{"host":"node2","pid":4242,"at":"2026-06-12T10:15:00Z"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhateverStandsAtAnEvictKeyAsks(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ value, says string }{
		{``, "an operator asked for it"},
		{`leave`, "an operator asked for it"},
		{`{"pid":7}`, "an operator asked for it"},
		{`{"host":"h","pid":"7"}`, "an operator asked for it"},
		{`{"host":"h","pid":-7}`, "an operator asked for it"},
		{`{"host":"h","pid":7,"at":"yesterday"}`, "an operator asked for it"},
		{`{"host":"h\u001b[2J\n","pid":7}`, `asked for by h\x1b[2J\n pid 7`},
		{`{"host":"h","pid":7,"cooldown_ms":-1}`, "asked for by h pid 7"},
		{`{"host":"h","pid":7,"cooldown_ms":9223372036854775807}`, "asked for by h pid 7"},
		{`{"host":"` + strings.Repeat("h", 1<<20) + `","pid":7}`, "an operator asked for it"},
	} {
		e := DecodeEviction([]byte(row.value))
		if got, want := e.Error(), "hold evicted: "+row.says; got != want || !errors.Is(e, ErrEvicted) {
			t.Errorf("%.40s: %q, want %q", row.value, got, want)
		}
		if e.Cooldown < 0 || e.Cooldown > CooldownMost {
			t.Errorf("%.60s: cooldown %v", row.value, e.Cooldown)
		}
	}
}
