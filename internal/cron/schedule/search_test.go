package schedule

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func openAll(t *testing.T) *Zones {
	t.Helper()
	z, err := OpenZones()
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestSearchesAreShort counts the months and segments that the worst expressions take, in many zones and every mode.
func TestSearchesAreShort(t *testing.T) {
	t.Parallel()
	const few = 250
	z := openAll(t)
	worst, what := 0, ""
	for _, spec := range []string{
		"0 0 29 2 *",               // once in four years, or eight
		"59 23 L 2 *",              // once a year
		"0 0 13 1 */5",             // a Friday or a Sunday
		"30 2 * 3 SUN#2",           // never, in New York
		"*/10 2 * 3 SUN#2",         // the same, in real time
		"*/10 2 * 3 SUNL",          // the same, in Berlin
		"0 0 1 1 *",                // once a year
		"* * * * *",                // always
		"*/59 23 31 */11 *",        // next to the year's end
		"0 12 30 12 *",             // a day that Samoa left out in 2011
		"15 2 1-7 10 ?",            // around the change on Lord Howe
		"0 0 * 1,3,5,7,8,10 MON#5", // a fifth Monday
	} {
		for i, name := range z.Names() {
			if i%3 != 0 && name != "America/New_York" && name != "Europe/Berlin" && name != "Pacific/Apia" {
				continue
			}
			zone, _ := z.Load(name)
			for _, dst := range []DST{DSTCron, DSTSkip, DSTLiteral} {
				r, err := parse(spec, Options{Zone: zone, DST: dst})
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range []time.Time{time.Unix(0, 0), time.Date(2011, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC)} {
					for _, ask := range []func(*search, int64) (int64, bool){(*search).next, (*search).prev} {
						s := r.(*calendarRule).search()
						ask(s, at.Unix())
						if s.steps > worst {
							worst, what = s.steps, fmt.Sprintf("%q in %s, dst %s, at %s", spec, name, dst, at)
						}
					}
				}
			}
		}
	}
	t.Logf("the worst search took %d steps: %s", worst, what)
	if worst > few || worst == 0 {
		t.Errorf("%s took %d steps, want at most %d", what, worst, few)
	}
}

// TestASearchEnds: even in a zone whose clocks go wild, with a calendar that was not looked at before.
func TestASearchEnds(t *testing.T) {
	t.Parallel()
	never := &calendar{second: 1, minute: 1, hour: 1, month: 1 << 2, days: days{dom: 1 << 30, dow: 1<<7 - 1, both: true}}
	for _, dst := range []DST{DSTCron, DSTSkip, DSTLiteral} {
		for _, ask := range []func(*search, int64) (int64, bool){(*search).next, (*search).prev} {
			s := &search{calendar: never, zone: utc, dst: dst}
			if tick, ok := ask(s, 1805007600); ok || s.steps > maxSteps {
				t.Errorf("dst %s: 30 February was found at %d after %d steps", dst, tick, s.steps)
			}
		}
	}
}

// TestSegments: what package time says of a zone's offsets, looked at every six hours of 140 years.
func TestSegments(t *testing.T) {
	t.Parallel()
	z := openAll(t)
	start, end := time.Date(1965, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2105, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for i, name := range z.Names() {
		if i%5 != 0 && name != "America/Ciudad_Juarez" && name != "America/New_York" {
			continue
		}
		zone, _ := z.Load(name)
		for t0 := start; t0 < end; {
			here := zone.at(t0)
			if here.end <= t0 {
				t.Fatalf("%s: a segment of %d ends at %d", name, t0, here.end)
			}
			if here.offset >= maxOffset || here.offset <= -maxOffset {
				t.Fatalf("%s: an offset of %d at %d", name, here.offset, t0)
			}
			last := min(here.end, end) - 1
			for at := t0; at <= last; at = max(at+1, min(at+6*3600, last)) {
				if _, offset := time.Unix(at, 0).In(zone.loc).Zone(); int64(offset) != here.offset {
					t.Fatalf("%s: the segment of %d has offset %d, and at %d it is %d", name, t0, here.offset, at, offset)
				}
			}
			t0 = last + 1
		}
	}
}

// TestNoZoneIsAsFarAsTheSearchesReach: also before 1970, by local mean time.
func TestNoZoneIsAsFarAsTheSearchesReach(t *testing.T) {
	t.Parallel()
	z := openAll(t)
	for _, name := range z.Names() {
		zone, _ := z.Load(name)
		for year := 1800; year < 2200; year++ {
			if here := zone.at(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Unix()); here.offset >= maxOffset || here.offset <= -maxOffset {
				t.Errorf("%s: an offset of %d in %d", name, here.offset, year)
			}
		}
	}
}

func TestADamagedDatabaseIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := openZones("no zip"); err == nil || !strings.HasPrefix(err.Error(), "open the embedded time zones: ") {
		t.Errorf("no zip at all: %v", err)
	}

	// A zone that is none, one with a bit flipped, and one packed in a way that nobody knows.
	for _, header := range []zip.FileHeader{
		{Name: "Bad/Zone", CRC32: crc32.ChecksumIEEE([]byte("TZif?"))},
		{Name: "Bad/Zone", CRC32: 1},
		{Name: "Bad/Zone", Method: 99},
	} {
		header.CompressedSize64, header.UncompressedSize64 = 5, 5
		var database bytes.Buffer
		w := zip.NewWriter(&database)
		f, err := w.CreateRaw(&header)
		if err == nil {
			_, err = f.Write([]byte("TZif?"))
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		z, err := openZones(database.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Load("Bad/Zone"); err == nil || !strings.HasPrefix(err.Error(), "read the embedded time zone Bad/Zone: ") {
			t.Errorf("%+v: %v", header, err)
		}
	}
}

// TestNothingHereReadsAClockOrAsksTheHost: not one name in the product's files that could.
func TestNothingHereReadsAClockOrAsksTheHost(t *testing.T) {
	t.Parallel()
	forbidden := []string{
		"Now", "Since", "Until", "Local", "LoadLocation", "Parse", // these look at the host's clock or its zone
		"Sleep", "After", "AfterFunc", "NewTimer", "NewTicker",
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
					found++
					if slices.Contains(forbidden, sel.Sel.Name) {
						t.Errorf("%s uses time.%s", name, sel.Sel.Name)
					}
				}
			}
			return true
		})
	}
	if found == 0 {
		t.Error("no file was looked at")
	}
}
