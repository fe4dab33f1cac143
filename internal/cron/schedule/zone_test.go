package schedule_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/schedule"
)

func TestZonesThatAreNone(t *testing.T) {
	t.Parallel()
	const want = "want an IANA name, such as Europe/Berlin or UTC"
	z := zones(t)
	missing := " is not in the database " + schedule.Version() + ": " + want
	for _, tt := range []struct{ name, want string }{
		{"Local", `"Local" is another one on each host: ` + want},
		{"local", `"local" is another one on each host: ` + want},
		{"europe/berlin", `"europe/berlin"` + missing + "; did you mean Europe/Berlin?"},
		{"Europe/Berln", `"Europe/Berln"` + missing + "; did you mean Europe/Berlin?"},
		{"Europe/Belrin", `"Europe/Belrin"` + missing + "; did you mean Europe/Berlin?"},
		{"Berlin", `"Berlin"` + missing + "; did you mean Europe/Berlin?"},
		{"New York", `"New York"` + missing + "; did you mean America/New_York?"},
		{"America/Argentina/Buenos Aires", `"America/Argentina/Buenos Aires"` + missing + "; did you mean America/Argentina/Buenos_Aires?"},
		{"Louisville", `"Louisville"` + missing + "; did you mean America/Kentucky/Louisville, America/Louisville?"},
		{"PST", `"PST"` + missing},
		{"UTC+2", `"UTC+2"` + missing},
		{"Middle/Earth", `"Middle/Earth"` + missing},
		{"Factory", `"Factory"` + missing},
		{"../etc/passwd", `"../etc/passwd"` + missing},
		{"Europe/", `"Europe/"` + missing},
		{"\x1b[2J\n", `"\x1b[2J\n"` + missing},
		{strings.Repeat("x", 100_000), `"` + strings.Repeat("x", 40) + `"... has 100000 bytes: ` + want},
	} {
		zone, err := z.Load(tt.name)
		if !errors.Is(err, schedule.ErrZone) || zone != nil {
			t.Errorf("Load(%.40q) gives %v and %v, want ErrZone", tt.name, zone, err)
			continue
		}
		if got := err.Error(); got != "bad time zone: "+tt.want {
			t.Errorf("Load(%.40q):\n got %s\nwant bad time zone: %s", tt.name, got, tt.want)
		}
	}
}

func TestZonesAreReadOnceAndShared(t *testing.T) {
	t.Parallel()
	z := zones(t)
	names := z.Names()
	if len(names) < 590 || !slices.IsSorted(names) || slices.Contains(names, "") {
		t.Fatalf("%d zones: %q", len(names), names)
	}
	var wg sync.WaitGroup
	loaded := make([][]*schedule.Zone, 4)
	for i := range loaded {
		wg.Go(func() {
			for _, name := range names {
				one, err := z.Load(name)
				if err != nil {
					t.Error(err)
				} else if one.Name() != name {
					t.Errorf("Load(%q) is called %q", name, one.Name())
				}
				loaded[i] = append(loaded[i], one)
			}
		})
	}
	wg.Wait()
	for i := range loaded {
		if !slices.Equal(loaded[i], loaded[0]) {
			t.Error("two loads of one name gave two zones")
		}
	}
	if utc, err := z.Load(""); err != nil || utc.Name() != "UTC" || utc.Location() != time.UTC {
		t.Errorf(`Load("") gives %v and %v, want UTC`, utc, err)
	}
}

// TestVersionIsOfTheDatabase: whoever renews the one without the other publishes a name for what nodes do not have.
func TestVersionIsOfTheDatabase(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	release, hash, _ := strings.Cut(schedule.Version(), "-")
	if !regexp.MustCompile(`^20\d\d[a-z]$`).MatchString(release) || hash != hex.EncodeToString(sum[:])[:12] {
		t.Errorf("the version is %q, and the SHA-256 of zoneinfo.zip %x", schedule.Version(), sum)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	for _, tt := range []struct {
		zone     string
		from, to time.Time
		want     []schedule.Change
	}{
		{"America/New_York", year(2027), year(2028), []schedule.Change{{At: 1805007600, Before: -18000, After: -14400}, {At: 1825567200, Before: -14400, After: -18000}}},
		{"America/New_York", schedule.Tick(1805007600).Time(), schedule.Tick(1825567200).Time(), []schedule.Change{{At: 1805007600, Before: -18000, After: -14400}}},
		{"America/New_York", schedule.Tick(1805007601).Time(), schedule.Tick(1825567200).Time(), nil},
		{"America/New_York", year(2028), year(2027), nil},
		// Two changes of name, and only one of the clocks.
		{"America/Ciudad_Juarez", time.Date(2022, 10, 1, 0, 0, 0, 0, time.UTC), year(2023), []schedule.Change{{At: 1669788000, Before: -21600, After: -25200}}},
		{"Pacific/Apia", year(2011).AddDate(0, 11, 0), year(2012), []schedule.Change{{At: 1325239200, Before: -36000, After: 50400}}},
		{"Asia/Tokyo", year(1970), year(2100), nil},
		{"UTC", time.Time{}, year(20000), nil},
	} {
		if got := zone(t, tt.zone).Changes(tt.from, tt.to); !slices.Equal(got, tt.want) {
			t.Errorf("%s from %s to %s: %v, want %v", tt.zone, tt.from, tt.to, got, tt.want)
		}
	}
}

// TestTheHostDecidesNothing runs the tests of ticks again, in processes whose host has another zone, a broken database, or one that lies.
func TestTheHostDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{
		{"TZ=Europe/London"},
		{"TZ=America/New_York"},
		{"TZ=", "ZONEINFO=" + t.TempDir()},
		{"TZ=Nowhere/Nothing", "ZONEINFO=/dev/null"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^(TestVectors|TestWhatTheClocksDo|TestAtWallTimes|TestWhatExpressionsMean)$", "-test.v")
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Count(string(out), "--- PASS") != 4 {
			t.Errorf("%q: %v\n%s", env, err, out)
		}
	}
}
