package schedule

import (
	"archive/zip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-coord/coord/internal/cron/nearest"
)

// zoneinfo is the time zone database, as the Go distribution has it; `make tzdata` renews it. The database is in the public domain.
//
//go:embed zoneinfo.zip
var zoneinfo string

//go:embed zoneinfo.version
var zoneinfoVersion string

// Version names the embedded time zone database: the release of it, and what begins the SHA-256 of its bytes. Nodes whose versions
// differ may disagree on what a tick is.
func Version() string { return strings.TrimSpace(zoneinfoVersion) }

// ErrZone is returned when a time zone is not one of the embedded database. The text names the nearest ones.
var ErrZone = errors.New("bad time zone")

// maxOffset is more than any zone has ever been away from UTC, in seconds.
const maxOffset = 16 * 60 * 60

// maxZoneName is more bytes than the name of any zone has.
const maxZoneName = 64

// Zone is a time zone of the embedded database.
type Zone struct {
	name string
	loc  *time.Location
}

// utc is where schedules are that name no zone.
var utc = &Zone{name: "UTC", loc: time.UTC}

// Name is the one by which the zone was asked for.
func (z *Zone) Name() string { return z.name }

// Location is for showing ticks in the zone. Its rules are those of the embedded database, whatever the host has.
func (z *Zone) Location() *time.Location { return z.loc }

// segment is a stretch of time in which the zone's offset is the same, in seconds east of UTC, as seen from a moment in it. It may be
// shorter than it could be: the offset after its end may be the same.
type segment struct {
	end    int64
	offset int64
}

// at gives the segment that a moment is in. It ends after the moment.
//
// Package time knows where it begins as well, and is wrong about it now and then: where a zone changed its rules between two changes of the
// clocks, as Ciudad Juarez did in November 2022, it tells the day at which the new rules would have set them. So whoever goes back
// in time here starts earlier and comes forward.
func (z *Zone) at(t int64) segment {
	moment := time.Unix(t, 0).In(z.loc)
	_, offset := moment.Zone()
	_, end := moment.ZoneBounds()
	switch {
	case end.IsZero():
		return segment{math.MaxInt64, int64(offset)}
	case end.Unix() > t:
		return segment{end.Unix(), int64(offset)}
	}

	// By a zone's rules package time gives each year 365 days, so on 31 December of a leap year the end that it tells has
	// passed. The year's end will do.
	end = time.Date(moment.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC)
	return segment{end.Unix(), int64(offset)}
}

// Change is a moment at which the clocks of a zone are set: forward where After is greater than Before, else back.
type Change struct {
	// At is the first moment of the new time.
	At Tick
	// Before and After are the offsets, in seconds east of UTC.
	Before, After int
}

// Changes gives the changes from one moment until another, that one not included.
func (z *Zone) Changes(from, until time.Time) []Change {
	var all []Change
	start, end := max(from.Unix(), 0), min(until.Unix(), int64(lastTick))
	before := z.at(start - 1)
	for t := start; t < end; {
		now := z.at(t)
		if now.offset != before.offset {
			all = append(all, Change{Tick(t), int(before.offset), int(now.offset)})
		}
		before, t = now, now.end
	}
	return all
}

// Zones are the time zones of the embedded database. Each is read once and then shared. It may be used from many goroutines.
type Zones struct {
	files map[string]*zip.File

	mu   sync.Mutex
	read map[string]*Zone
}

// OpenZones reads the directory of the embedded database. An error means that the program itself is damaged.
func OpenZones() (*Zones, error) { return openZones(zoneinfo) }

func openZones(database string) (*Zones, error) {
	r, err := zip.NewReader(strings.NewReader(database), int64(len(database)))
	if err != nil {
		return nil, fmt.Errorf("open the embedded time zones: %w", err)
	}
	z := &Zones{files: map[string]*zip.File{}, read: map[string]*Zone{"": utc}}
	for _, f := range r.File {
		// Factory is what a system shows that was never told where it is.
		if !f.FileInfo().IsDir() && f.Name != "Factory" {
			z.files[f.Name] = f
		}
	}
	return z, nil
}

// Names gives all time zones, in order.
func (z *Zones) Names() []string { return slices.Sorted(maps.Keys(z.files)) }

// Load gives a time zone by its IANA name; "" is UTC. The error wraps ErrZone. "Local" is no zone: it would be another one on
// each host.
func (z *Zones) Load(name string) (*Zone, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if zone := z.read[name]; zone != nil {
		return zone, nil
	}
	f := z.files[name]
	if f == nil {
		return nil, z.unknown(name)
	}
	zone, err := load(f)
	if err != nil {
		return nil, fmt.Errorf("read the embedded time zone %s: %w", name, err)
	}
	z.read[name] = zone
	return zone, nil
}

func load(f *zip.File) (*Zone, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	loc, err := time.LoadLocationFromTZData(f.Name, data)
	if err != nil {
		return nil, err
	}
	return &Zone{f.Name, loc}, nil
}

// unknown says which zones may have been meant.
func (z *Zones) unknown(name string) error {
	const want = "want an IANA name, such as Europe/Berlin or UTC"
	if strings.EqualFold(name, "local") {
		return fmt.Errorf("%w: %s is another one on each host: %s", ErrZone, quote(name), want)
	}

	if len(name) > maxZoneName {
		return fmt.Errorf("%w: %s has %d bytes: %s", ErrZone, quote(name), len(name), want)
	}

	// A slip or two in a long name, or a name without its continent.
	best, least := []string(nil), len(name)/4
	typed := strings.ToLower(strings.ReplaceAll(name, " ", "_"))
	for _, known := range z.Names() {
		full := strings.ToLower(known)
		d := min(nearest.Slips(least, typed, full), nearest.Slips(least, typed, full[strings.LastIndex(full, "/")+1:]))
		switch {
		case d < least || d == least && best == nil:
			best, least = []string{known}, d
		case d == least && len(best) < 3:
			best = append(best, known)
		}
	}
	return fmt.Errorf("%w: %s is not in the database %s: %s%s", ErrZone, quote(name), Version(), want, nearest.Hint(strings.Join(best, ", ")))
}
