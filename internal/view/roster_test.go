package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

var (
	nightly = record.ID{Tick: 1805007600}
	again   = record.ID{Tick: 1805007600, N: 2}
	onHost  = record.ID{Tick: 1805007600, Host: "n1"}
)

const openValue = `{"nonce":"x","host":"n1","lease":"123","ttl_ms":10000,"kind":"retry","attempt":2,"spec_rev":5,"at_ms":1805007601000,"by":"ann"}`

// put puts a start: its marker and its open record, as a claim does.
func put(r *Roster, job string, id record.ID, rev int64) {
	r.Put(record.Key(record.Runs, job, id), []byte(openValue), rev)
	r.Put(record.OpenKey(job, id), []byte(openValue), rev)
}

func stateWords(r *Roster) (words []string) {
	for _, run := range r.Runs() {
		words = append(words, run.Name()+" "+string(run.State))
	}
	return words
}

func TestWhatRunsIsWhatIsOpen(t *testing.T) {
	t.Parallel()
	r := NewRoster()
	put(r, "b", nightly, 7)
	put(r, "a", again, 8)
	put(r, "a", nightly, 9)
	put(r, "c", onHost, 10)
	want := []string{"a/1805007600 running", "a/1805007600.2 running", "b/1805007600 running", "c/1805007600@n1 running"}
	if got := stateWords(r); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	// A marker goes first where a daemon died: then it is not known how it ended. Both go together where it ended.
	r.Delete(record.Key(record.Runs, "c", onHost))
	r.Delete(record.Key(record.Runs, "b", nightly))
	r.Delete(record.OpenKey("b", nightly))
	// A marker alone is somebody's word that it lives.
	r.Delete(record.OpenKey("a", again))
	want = []string{"a/1805007600 running", "a/1805007600.2 running", "c/1805007600@n1 settling"}
	if got := stateWords(r); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestARunAsAProgramReadsIt(t *testing.T) {
	t.Parallel()
	r := NewRoster()
	put(r, "a", again, 8)
	got := r.Runs()[0]
	want := Line{
		Kind: hold.KindCron, Name: "a", State: Running, Host: "n1", Rev: 8, Lease: "7b", TTLLeft: -1, Position: -1, Since: "2027-03-14T07:00:01Z",
		Run: &RunLine{ID: "1805007600.2", Tick: "2027-03-14T07:00:00Z", Kind: "retry", Attempt: 2, By: "ann"},
	}
	if diff := cmp.Diff(want, got.Line()); diff != "" {
		t.Error(diff)
	}
}

// Whoever may write below the prefix may write anything.
func TestWhatIsNoRunIsNone(t *testing.T) {
	t.Parallel()
	r := NewRoster()
	for _, key := range []string{
		record.Runs + "a", record.Runs + "a b/1", record.Opens + "a/1@h", record.Opens + "x", record.Jobs + "a/b", record.Fires + "a/1", record.Results + "a/1", "", "/x",
	} {
		r.Put(key, []byte(openValue), 1)
		r.Delete(key)
		r.Put(key, []byte(`{"paused":{}}`), 1)
	}
	if len(r.Runs())+len(r.Pauses(time.Now())) != 0 {
		t.Errorf("got %v, %v", r.Runs(), r.Pauses(time.Now()))
	}
	for _, value := range []string{"", "[]", "\xff", `{"lease":7}`, strings.Repeat("9", 100)} {
		r.Put(record.OpenKey("a", nightly), []byte(value), 3)
		if all := r.Runs(); len(all) != 1 || all[0].State != Settling || all[0].Host != "" || !all[0].Since.IsZero() || all[0].Rev != 3 {
			t.Errorf("%q is %+v", value, all)
		}
	}
}

func TestWhatIsPaused(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 12, 10, 0, 0, 0, time.UTC)
	r := NewRoster()
	told := func() (words []string) {
		for _, p := range r.Pauses(now) {
			l := p.Line()
			words = append(words, strings.Join([]string{l.Name, string(l.State), l.Pause.By, l.Pause.At, l.Pause.Until, l.Pause.Why}, "|"))
		}
		return words
	}
	for job, spec := range map[string]string{
		"plain": `{"cmd":["true"]}`, "word": `{"cmd":["\"paused\""]}`, "null": `{"paused":null}`, "broken": `{"paused":{`,
		"for-good": `{"paused":{"by":"ann","why":"migration","at":"2026-06-01T00:00:00Z"}}`,
		"until":    `{"paused":{"at":"2026-06-01T00:00:00Z","until":"2026-06-12T10:00:01Z"}}`,
		"over":     `{"paused":{"by":"ann","until":"2026-06-12T10:00:00Z"}}`,
	} {
		r.Put(record.JobKey(job), []byte(spec), 1)
	}
	want := []string{"for-good|paused|ann|2026-06-01T00:00:00Z||migration", "until|paused|?|2026-06-01T00:00:00Z|2026-06-12T10:00:01Z|"}
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	r.Put(record.JobKey("for-good"), []byte(`{"cmd":["true"]}`), 1)
	r.Delete(record.JobKey("until"))
	r.Put(record.Pause, []byte(`{"by":"bob","at_ms":9223372036854775807}`), 1)
	if got := told(); !slices.Equal(got, []string{"|paused|bob|||"}) {
		t.Errorf("got %q", got)
	}
	r.Put(record.Pause, []byte(`{"by":"bob","at_ms":1,"resumed_ms":2}`), 1)
	if got := told(); got != nil {
		t.Errorf("got %q", got)
	}
	r.Put(record.Pause, []byte(`nonsense`), 1)
	if got := told(); !slices.Equal(got, []string{"|paused|?|||"}) {
		t.Errorf("a pause that cannot be read stands: got %q", got)
	}
	r.Delete(record.Pause)
	if got := told(); got != nil {
		t.Errorf("got %q", got)
	}
}
