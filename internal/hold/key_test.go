package hold_test

import (
	"math"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/hold"
	"pgregory.net/rapid"
)

func TestKeysAreWhereTheSchemaSays(t *testing.T) {
	t.Parallel()
	open, last := hold.OfficeKeys("a")
	slotOpen, slotLast := hold.SlotKeys("s", 3, 2)
	semaOpen, semaLast := hold.SemaRecords("s")
	for _, tt := range []struct {
		got  string
		want string
	}{
		{hold.ElectKey("a", 0x694d8a3c).String(), "/conch/v1/elect/a/694d8a3c"},
		{hold.SemaKey("s", 3, 0x1f).String(), "/conch/v1/sema/s/3/1f"},
		{hold.SlotKey("s", 3, 0).String(), "/conch/v1/slot/s/3/0"},
		{open.String(), "/conch/v1/open/elect/a"},
		{last.String(), "/conch/v1/last/elect/a"},
		{slotOpen.String(), "/conch/v1/open/sema/s/3/2"},
		{slotLast.String(), "/conch/v1/last/sema/s/3/2"},
		{hold.EvictKey(hold.KindElect, "a", 31).String(), "/conch/v1/evict/elect/a/1f"},
		{hold.EvictKey(hold.KindSema, "s", 31).String(), "/conch/v1/evict/sema/s/1f"},
		{hold.EvictRange(hold.KindSema, "s"), "/conch/v1/evict/sema/s/"},
		{hold.Key{Area: hold.AreaSpread, Name: "s", Host: "h", Lease: 31}.String(), hold.SpreadPrefix("s", "h") + "/1f"},
		{hold.SpreadPrefix("s", "h"), "/conch/v1/spread/s/h"},
		{semaOpen, "/conch/v1/open/sema/s"},
		{semaLast, "/conch/v1/last/sema/s"},
		{hold.ElectPrefix("a"), "/conch/v1/elect/a"},
		{hold.ElectRange("a"), "/conch/v1/elect/a/"},
		{hold.SemaRange("s"), "/conch/v1/sema/s/"},
		{hold.SemaMaxRange("s", 3), "/conch/v1/sema/s/3/"},
		{hold.SlotRange("s", 3), "/conch/v1/slot/s/3/"},
		{hold.AreaRange(hold.AreaLast), "/conch/v1/last/"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}

// anyKey draws keys of all areas.
func anyKey() *rapid.Generator[hold.Key] {
	return rapid.Custom(func(t *rapid.T) hold.Key {
		name := rapid.StringMatching(`[A-Za-z0-9]([._-]?[A-Za-z0-9]){0,8}`).Draw(t, "name")
		lease := rapid.Int64Range(1, math.MaxInt64).Draw(t, "lease")
		most := rapid.IntRange(1, math.MaxInt32).Draw(t, "max")
		slot := rapid.IntRange(0, most-1).Draw(t, "slot")
		open, last := hold.OfficeKeys(name)
		slotOpen, slotLast := hold.SlotKeys(name, most, slot)
		return rapid.SampledFrom([]hold.Key{
			hold.ElectKey(name, lease), hold.SemaKey(name, most, lease), hold.SlotKey(name, most, slot),
			open, last, slotOpen, slotLast,
			hold.EvictKey(hold.KindElect, name, lease), hold.EvictKey(hold.KindSema, name, lease),
			{Area: hold.AreaSpread, Name: name, Host: "h-1.example", Lease: lease},
		}).Draw(t, "key")
	})
}

func TestParsingABuiltKeyGivesItBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := anyKey().Draw(t, "key")
		if hold.ValidName(k.Name) != nil {
			t.Fatalf("drew an invalid name %q", k.Name)
		}
		if got, err := hold.ParseKey(k.String()); err != nil || got != k {
			t.Fatalf("ParseKey(%s) = %+v, %v, want %+v", k, got, err, k)
		}
	})
}

func TestNoKeyLiesBelowAnother(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyKey().Draw(t, "a"), anyKey().Draw(t, "b")
		if a != b && (a.String() == b.String() || strings.HasPrefix(b.String(), a.String()+"/")) {
			t.Fatalf("%s and %s", a, b)
		}
	})
}

func TestARangeSeesItsOwnNameOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := anyKey().Draw(t, "key")
		name := rapid.StringMatching(`[A-Za-z0-9]([._-]?[A-Za-z0-9]){0,8}`).Draw(t, "name")
		for _, r := range []struct {
			area  hold.Area
			start string
		}{
			{hold.AreaElect, hold.ElectRange(name)},
			{hold.AreaSema, hold.SemaRange(name)},
		} {
			want := k.Area == r.area && k.Name == name
			if got := strings.HasPrefix(k.String(), r.start); got != want {
				t.Fatalf("range %s sees %s: %v, want %v", r.start, k, got, want)
			}
		}
	})
}

func TestParseKeyReadsLeasesAsNumbers(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"1f", "001f", "000000000000000000000000001f", "1F"} {
		k, err := hold.ParseKey("/conch/v1/elect/a/" + s)
		if err != nil || k.Lease != 31 {
			t.Errorf("lease %s reads as %d, %v", s, k.Lease, err)
		}
	}
}

func TestParseKeyRefusesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"",
		"/conch/v1",
		"/conch/v1/",
		"/conch/v2/elect/a/1f",
		"conch/v1/elect/a/1f",
		"/conch/v1/elect",
		"/conch/v1/elect/a",
		"/conch/v1/elect/a/",
		"/conch/v1/elect/a/0",
		"/conch/v1/elect/a/xyz",
		"/conch/v1/elect/a/-1",
		"/conch/v1/elect/a/+1",
		"/conch/v1/elect/a/0x1",
		"/conch/v1/elect/a/8000000000000000",
		"/conch/v1/elect/a/1f/2", // another election nested in this one
		"/conch/v1/elect/a/b/1f",
		"/conch/v1/elect//1f",
		"/conch/v1/elect/a b/1f",
		"/conch/v1/elect/a\x00/1f",
		"/conch/v1/elect/\x1b[2J/1f",
		"/conch/v1/sema/s/1f",
		"/conch/v1/sema/s/0/1f",
		"/conch/v1/sema/s/03/1f",
		"/conch/v1/sema/s/+3/1f",
		"/conch/v1/sema/s/2147483648/1f",
		"/conch/v1/slot/s/3/3",
		"/conch/v1/slot/s/3/-1",
		"/conch/v1/slot/s/3",
		"/conch/v1/open/elect/a/3/1",
		"/conch/v1/open/sema/s",
		"/conch/v1/open/cron/a",
		"/conch/v1/open/a",
		"/conch/v1/evict/elect/a",
		"/conch/v1/spread/s/h",
		"/conch/v1/spread/s//1f",
		"/conch/v1/spread/s/-h/1f",
		"/conch/v1/cron/job/a",
	} {
		k, err := hold.ParseKey(s)
		if err == nil {
			t.Errorf("ParseKey(%q) = %+v", s, k)
			continue
		}
		if text := err.Error(); strings.ContainsAny(text, "\x1b\x00\n") {
			t.Errorf("ParseKey(%q) repeats control characters: %q", s, text)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{"/conch/v1/elect/a/1f", "/conch/v1/open/sema/s/3/2", "/conch/v1/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := hold.ParseKey(s)
		if err != nil {
			return
		}
		if back, err := hold.ParseKey(k.String()); err != nil || back != k {
			t.Fatalf("%q reads as %+v, which is written as %s and reads as %+v, %v", s, k, k, back, err)
		}
	})
}
