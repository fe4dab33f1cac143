package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
)

// inquiry is one about a job at second now, of an hourly job if the spec says nothing else.
func inquiry(t *testing.T, spec string, now int64, change func(*Inquiry)) *Inquiry {
	t.Helper()
	if !strings.Contains(spec, `"schedule"`) {
		spec = `"schedule":"0 * * * *",` + spec
	}
	spec = strings.TrimSuffix(spec, ",")
	j, err := job.Parse("x", []byte(`{"cmd":["true"],`+spec+`}`))
	if err != nil {
		t.Fatal(err)
	}
	zones, err := schedule.OpenZones()
	if err != nil {
		t.Fatal(err)
	}
	q := &Inquiry{Picture: &Picture{Cursors: map[string]record.Cursor{}}, Spec: j, Now: time.Unix(now, 0)}
	if q.Job, err = JobOf("x", 9, j, zones); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(q)
	}
	return q
}

// brief is an account in a few words.
func (a Account) brief() string {
	text := string(a.What) + " " + a.ID.String()
	if a.Before != 0 || a.After != 0 {
		text += fmt.Sprintf(" between %d and %d", a.Before, a.After)
	}
	if a.Cluster {
		text += " cluster"
	}
	if a.Start != nil && a.What == Due {
		text += " behind " + a.Start.ID.String()
	}
	return text
}

func of(kind record.Kind, id string) (record.ID, record.Open) {
	parsed, _ := record.ParseID(id)
	return parsed, record.Open{Host: "a", Kind: kind, Attempt: 1}
}

func running(kind record.Kind, id string) func(*Inquiry) {
	return func(q *Inquiry) {
		parsed, o := of(kind, id)
		q.Picture.Starts = append(q.Picture.Starts, Pictured{Job: "x", Open: Open{Open: o, ID: parsed, Alive: true}})
	}
}

func asked(kind record.Kind, id string) func(*Inquiry) {
	return func(q *Inquiry) {
		parsed, _ := of(kind, id)
		q.Picture.Asked = append(q.Picture.Asked, PicturedWant{Job: "x", Want: Want{Want: record.Want{Kind: kind}, ID: parsed}})
	}
}

func result(kind record.Kind, id string, from int64, ticks int) func(*Inquiry) {
	return func(q *Inquiry) {
		parsed, _ := of(kind, id)
		q.Results = append(q.Results, record.Result{RunID: "x/" + id, Tick: parsed.Tick, From: from, Ticks: ticks, Kind: kind, Status: record.Success})
	}
}

func cursor(host string, tick int64) func(*Inquiry) {
	return func(q *Inquiry) { q.Picture.Cursors[host] = record.Cursor{Tick: tick} }
}

func both(all ...func(*Inquiry)) func(*Inquiry) {
	return func(q *Inquiry) {
		for _, f := range all {
			f(q)
		}
	}
}

func paused(s record.Stop) func(*Inquiry) {
	return func(q *Inquiry) { q.Picture.Pause = s }
}

func peers(all ...Peer) func(*Inquiry) { return func(q *Inquiry) { q.Picture.Peers = all } }

// Each line is red when its case is left out of About.
func TestAboutAnyMoment(t *testing.T) {
	t.Parallel()
	const now = 100*3600 + 10
	for name, tt := range map[string]struct {
		spec   string
		at     int64
		change func(*Inquiry)
		want   []string
	}{
		"a moment that is no tick":              {at: 99*3600 + 1, want: []string{"no_tick 356401 between 356400 and 360000"}},
		"before the last edit":                  {spec: `"schedule_since":"1970-01-05T00:30:00Z",`, at: 96 * 3600, want: []string{"before_edit 345600 between 0 and 349200"}},
		"before start_at":                       {spec: `"start_at":"1970-01-05T00:30:00Z",`, at: 96 * 3600, want: []string{"outside 345600 between 0 and 349200"}},
		"after end_at":                          {spec: `"end_at":"1970-01-05T00:30:00Z",`, at: 99 * 3600, want: []string{"outside 356400 between 345600 and 0"}},
		"decided, its record expired":           {at: 99 * 3600, change: cursor("", 99*3600), want: []string{"decided 356400"}},
		"a job that nobody knows":               {at: 99 * 3600, want: []string{"unseen 356400"}},
		"passed, and nobody recorded it":        {at: 99 * 3600, change: cursor("", 98*3600), want: []string{"overdue 356400"}},
		"due now":                               {at: 100 * 3600, want: []string{"due 360000"}},
		"due now, behind a run":                 {at: 100 * 3600, change: running(record.Scheduled, "356400"), want: []string{"due 360000 behind 356400"}},
		"due now, beside a run":                 {spec: `"overlap":"allow",`, at: 100 * 3600, change: running(record.Scheduled, "356400"), want: []string{"due 360000"}},
		"still to come":                         {at: 101 * 3600, want: []string{"future 363600"}},
		"still to come, in a pause":             {at: 101 * 3600, change: paused(record.Stop{By: "me"}), want: []string{"paused 363600 cluster"}},
		"still to come, after the pause":        {at: 101 * 3600, change: paused(record.Stop{By: "me", Until: (now + 1) * 1000}), want: []string{"future 363600"}},
		"due in the job's own pause":            {spec: `"paused":{"by":"me"},`, at: 100 * 3600, want: []string{"paused 360000"}},
		"in a pause that is over":               {spec: `"resumed_at":"1970-01-05T04:00:00Z",`, at: 99 * 3600, change: cursor("", 98*3600), want: []string{"resumed 356400"}},
		"ended":                                 {at: 99 * 3600, change: result(record.Scheduled, "356400", 0, 0), want: []string{"ended 356400"}},
		"running":                               {at: 99 * 3600, change: running(record.Scheduled, "356400"), want: []string{"running 356400"}},
		"read while it ended":                   {at: 99 * 3600, change: both(running(record.Scheduled, "356400"), result(record.Scheduled, "356400", 0, 0)), want: []string{"ended 356400"}},
		"waiting for the run before it":         {at: 99 * 3600, change: asked(record.Queued, "356400.1"), want: []string{"waiting 356400.1"}},
		"failed, and tried again":               {at: 99 * 3600, change: both(result(record.Scheduled, "356400", 0, 0), asked(record.Retry, "356400.1")), want: []string{"ended 356400", "waiting 356400.1"}},
		"in a range":                            {at: 99 * 3600, change: result(record.Scheduled, "360000", 98*3600, 3), want: []string{"covered 360000"}},
		"in a range, and no tick":               {at: 99*3600 + 1, change: result(record.Scheduled, "360000", 98*3600, 3), want: []string{"no_tick 356401 between 356400 and 360000"}},
		"asked for at a moment that is no tick": {at: 99*3600 + 1, change: result(record.Manual, "356401.1", 0, 0), want: []string{"ended 356401.1"}},
		"asked for beside a tick":               {at: 101 * 3600, change: running(record.Manual, "363600.1"), want: []string{"future 363600", "running 363600.1"}},
		"asked for beside a tick, and waiting":  {at: 101 * 3600, change: asked(record.Backfill, "363600.1"), want: []string{"future 363600", "waiting 363600.1"}},
		"on all hosts": {
			spec: `"run_on":"all","select":{"zone":"a"},`, at: 100 * 3600,
			change: both(peers(Peer{Host: "a", Labels: map[string]string{"zone": "a"}}, Peer{Host: "b", Labels: map[string]string{"zone": "a"}}, Peer{Host: "c"}),
				cursor("a", 100*3600), running(record.Scheduled, "360000@a")),
			want: []string{"running 360000@a", "due 360000@b"},
		},
		"on all hosts, of which there is none": {spec: `"run_on":"all",`, at: 100 * 3600, want: []string{"due 360000"}},
		"with jitter":                          {spec: `"jitter":"1h",`, at: 100 * 3600, want: []string{"future 360000"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, a := range inquiry(t, tt.spec, now, tt.change).About(tt.at) {
				got = append(got, a.brief())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestOfOneStart(t *testing.T) {
	t.Parallel()
	q := inquiry(t, "", 360010, both(running(record.Scheduled, "356400"), asked(record.Retry, "356400.1")))
	for _, id := range []record.ID{{Tick: 356400}, {Tick: 356400, N: 1}} {
		if a, ok := q.Of(id); !ok || a.ID != id {
			t.Errorf("%v: %+v %v", id, a, ok)
		}
	}
	if a, ok := q.Of(record.ID{Tick: 356400, N: 2}); ok {
		t.Errorf("%+v of what never was", a)
	}
}

func TestAroundNow(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string][2]int64{
		``: {360000, 363600}, `"schedule":"@manual",`: {0, 0}, `"schedule":"@at 1970-01-05T00:00:00Z",`: {345600, 0},
		`"schedule":"@at 1971-01-05T00:00:00Z",`: {0, 31881600}, `"schedule_since":"1970-01-05T12:00:00Z",`: {0, 392400},
	} {
		if last, next := inquiry(t, spec, 360000, nil).Around(); [2]int64{last, next} != want {
			t.Errorf("%s: %d and %d, want %v", spec, last, next, want)
		}
	}
}

func TestAPictureFindsWhatIsNamed(t *testing.T) {
	t.Parallel()
	p := inquiry(t, "", 0, both(running(record.Manual, "7.1"), peers(Peer{Host: "a"}))).Picture
	if p.Start(record.ID{Tick: 7, N: 1}) == nil || p.Start(record.ID{Tick: 7}) != nil || p.Peer("a") == nil || p.Peer("b") != nil {
		t.Errorf("%+v", p)
	}
	if p.Running("a") != 1 || p.Running("b") != 0 {
		t.Error("not what runs where")
	}
}
