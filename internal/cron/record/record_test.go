package record

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func ids() *rapid.Generator[ID] {
	return rapid.Custom(func(t *rapid.T) ID {
		return ID{
			Tick: rapid.Int64Range(0, 253402300799).Draw(t, "tick"), N: rapid.IntRange(0, 1000).Draw(t, "n"),
			Host: rapid.SampledFrom([]string{"", "a", "node-1.example", "x_2"}).Draw(t, "host"),
		}
	})
}

func TestAKeyIsTakenApartAsItWasMade(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := ids().Draw(t, "id")
		name := rapid.SampledFrom([]string{"a", "backup.db", "re_index-2"}).Draw(t, "name")
		if got, err := ParseID(id.String()); err != nil || got != id {
			t.Fatalf("%s: %v, %v", id, got, err)
		}
		for _, area := range []string{Fires, Runs, Results, Wants, Kills} {
			if n, got, err := ParseKey(area, Key(area, name, id)); err != nil || n != name || got != id {
				t.Fatalf("%s: %s %v, %v", Key(area, name, id), n, got, err)
			}
			if !strings.HasPrefix(Key(area, name, id), Range(area, name)) {
				t.Fatalf("%s is not in its range", Key(area, name, id))
			}
		}
		if n, got, err := ParseOpen(OpenKey(name, id)); err != nil || n != name || got != id {
			t.Fatalf("%s: %s %v, %v", OpenKey(name, id), n, got, err)
		}
		if n, host, err := ParseCursor(CursorKey(name, id.Host)); err != nil || n != name || host != id.Host {
			t.Fatalf("%s: %s %s, %v", CursorKey(name, id.Host), n, host, err)
		}
	})
}

func TestWhatIsNoKeyIsRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "x", "-1", "01", "1.", "1.0", "1.01", "1.x", "1@", "1@a b", "1@a@b", "1.2.3", "99999999999999999999", "1805007600 ",
	} {
		if id, err := ParseID(s); err == nil {
			t.Errorf("id %q is %v", s, id)
		}
	}
	for _, s := range []string{"", Fires, Fires + "a", Fires + "a/", Fires + "a/b/1", Fires + "../1", Runs + "a/1", Fires + "a\n/1"} {
		if name, id, err := ParseKey(Fires, s); err == nil {
			t.Errorf("%q is %s %v", s, name, id)
		}
	}
	for _, s := range []string{"", Opens + "a", Opens + "a/1@b", Opens + "a@b/1", Opens + "a@b/1@c", Opens + "a b/1", Runs + "a/1"} {
		if name, id, err := ParseOpen(s); err == nil {
			t.Errorf("%q is %s %v", s, name, id)
		}
	}
	for _, s := range []string{"", Cursors, Cursors + "a@", Cursors + "a/b", Cursors + "@a", Jobs + "a"} {
		if name, host, err := ParseCursor(s); err == nil {
			t.Errorf("%q is %s %s", s, name, host)
		}
	}
	for _, s := range []string{"", Jobs, Jobs + "a/b", Runs + "a", Jobs + "a\x1b"} {
		if name, err := ParseName(Jobs, s); err == nil {
			t.Errorf("%q is %s", s, name)
		}
	}
	if name, err := ParseName(Jobs, JobKey("a")); name != "a" || err != nil {
		t.Error(name, err)
	}
}

func TestIDsAreInOrder(t *testing.T) {
	t.Parallel()
	order := []ID{{Tick: 1}, {Tick: 1, Host: "a"}, {Tick: 1, N: 1}, {Tick: 1, N: 2}, {Tick: 2}}
	for i := range order {
		for k := range order {
			if got := order[i].Compare(order[k]); (got < 0) != (i < k) || (got > 0) != (i > k) {
				t.Errorf("%v to %v: %d", order[i], order[k], got)
			}
		}
	}
}

// What is at a key may be anything.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "x", "[]", `"a"`, "{", `{"tick":"x"}`, "{\"host\":\"\xff\"}", `{"tick":1e99}`, strings.Repeat(" ", limit) + "{}"} {
		if c, ok := Decode[Cursor]([]byte(raw)); ok || c != (Cursor{}) {
			t.Errorf("%.40q is %v", raw, c)
		}
	}
	if c, ok := Decode[Cursor]([]byte(`{"tick":7,"host":"a","later":true}`)); !ok || c != (Cursor{7, "a"}) {
		t.Errorf("a newer daemon's cursor is %v, %v", c, ok)
	}
}

func TestAResultIsALineOfJSONWhateverWasWritten(t *testing.T) {
	t.Parallel()
	r := Result{Job: "j", Tick: 1, RunID: "j/1.2@h", Output: Output{Tail: "a\x00\n\u2028<&>\x1b[31m"}, EndedAt: StampOf(time.Unix(1, 999_999_999))}
	line := Encode(r)
	if !json.Valid([]byte(line)) || strings.ContainsAny(line, "\n\x00\x1b") || !utf8.ValidString(line) {
		t.Errorf("%q", line)
	}
	if !strings.Contains(line, `"ended_at":"1970-01-01T00:00:01.999Z"`) || strings.Contains(line, "claimed_at") || !strings.Contains(line, "<&>") {
		t.Error(line)
	}
	back, ok := Decode[Result]([]byte(line))
	if !ok || Encode(back) != line {
		t.Errorf("back: %s", Encode(back))
	}
	if id, err := back.ID(); err != nil || id != (ID{1, 2, "h"}) {
		t.Error(id, err)
	}
}

func TestAPause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stop Stop
		at   int64
		in   bool
		end  int64
	}{
		{Stop{}, 5, true, 0},
		{Stop{Until: 10}, 9, true, 10},
		{Stop{Until: 10}, 10, false, 10},
		{Stop{Resumed: 7}, 5, false, 7},
		{Stop{Until: 10, Resumed: 7}, 8, false, 7},
		{Stop{Until: 10, Resumed: 12}, 11, false, 10},
	} {
		if c.stop.In(c.at) != c.in || c.stop.End() != c.end {
			t.Errorf("%+v at %d: in %v, end %d", c.stop, c.at, c.stop.In(c.at), c.stop.End())
		}
	}
}

func TestStatusesTellWhatHappened(t *testing.T) {
	t.Parallel()
	var started, bad []Status
	for _, s := range Statuses() {
		if s.Started() {
			started = append(started, s)
		}
		if s.Bad() {
			bad = append(bad, s)
		}
	}
	if len(Statuses()) != 8 || len(started) != 5 || len(bad) != 6 {
		t.Errorf("started %v, bad %v", started, bad)
	}
}
