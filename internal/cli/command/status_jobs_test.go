package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/view"
)

// startsOf is where a start of a job stands, on a lease.
func (s settled) starts(t *testing.T, job string, id record.ID, o record.Open) {
	t.Helper()
	o.Lease = int64(s.lease)
	value := record.Encode(o)
	s.put(t, record.OpenKey(job, id), value)
	s.put(t, record.Key(record.Runs, job, id), value, clientv3.WithLease(s.lease))
}

// newCron has two runs, one of which is not settled, two jobs that are paused, and what is kept of others.
func newCron(t *testing.T) settled {
	t.Helper()
	s := newSettled(t)
	at := testTime.UnixMilli()
	tick := record.ID{Tick: testTime.Unix()}
	again := record.ID{Tick: testTime.Unix(), N: 2}
	s.starts(t, "backup", tick, record.Open{Host: "n1", Kind: record.Scheduled, Attempt: 1, At: at})
	s.starts(t, "clean", again, record.Open{Host: "\x1b[2J", Kind: record.Retry, Attempt: 2, At: at, By: "ann"})
	if _, err := s.client.Delete(t.Context(), record.Key(record.Runs, "clean", again)); err != nil {
		t.Fatal(err)
	}
	s.put(t, record.Key(record.Results, "clean", tick), "{}")
	s.put(t, record.JobKey("clean"), `{"schedule":"@hourly","cmd":["true"],"paused":{"by":"ann","why":"moves\u001b[1m","at":"2026-01-01T00:00:00Z","until":"2999-01-01T00:00:00Z"}}`)
	s.put(t, record.JobKey("idle"), `{"paused":{"by":"bob"}}`)
	s.put(t, record.JobKey("backup"), `{"paused":{"by":"bob","until":"2001-01-01T00:00:00Z"}}`)
	return s
}

const (
	backupRow = "cron backup - running n1 [0-9]+d[0-9][0-9]h [0-9]+m[0-9]+s - - [0-9]+ 2026-01-01T00:00:00Z, scheduled, attempt 1"
	cleanRow  = `cron clean - settling \\x1b\[2J [0-9]+d[0-9][0-9]h [0-9]+m[0-9]+s - - [0-9]+ 2026-01-01T00:00:00Z, retry, attempt 2, id [0-9]+\.2`
	cleanNote = `cron clean: paused by ann since 2026-01-01T00:00:00Z until 2999-01-01T00:00:00Z: moves\\x1b\[1m`
	idleNote  = `cron idle: paused by bob`
)

func TestStatusTellsWhatRuns(t *testing.T) {
	t.Parallel()
	etcd := newCron(t)
	const head = `KIND NAME SLOT STATE HOST AGE TTL LEFT WAITING PID REV CMD OR LAST HOLD`
	for args, tt := range map[string]struct {
		code int
		rows []string
	}{
		"--kind cron":             {0, []string{head, backupRow, cleanRow, cleanNote, idleNote}},
		"--kind cron backup":      {0, []string{head, backupRow}},
		"--kind cron clean u-1":   {0, []string{head, cleanRow, cleanNote}},
		"--kind cron idle":        {1, []string{"no job runs", idleNote}},
		"--kind cron reports":     {1, []string{"no job runs"}},
		"--kind elect backup":     {1, []string{"nothing is held"}},
		"backup u-1":              {0, []string{head, backupRow, "host u-1 - up .*"}},
		"nothing":                 {1, []string{"nothing is held, no job runs, and no host is up"}},
		"--kind host":             {0, []string{head, "host u-1 - up .*"}},
		"--kind cron backup idle": {0, []string{head, backupRow, idleNote}},
	} {
		t.Run(args, func(t *testing.T) {
			s := etcd.shell()
			if code := s.conch(append([]string{"status"}, strings.Fields(args)...)...); code != tt.code || s.stderr.String() != "" {
				t.Errorf("code %d, want %d; %s", code, tt.code, s.stderr.String())
			}
			matches(t, table(s.stdout.String()), tt.rows)
		})
	}
	etcd.put(t, record.Pause, `{"by":"eve","why":"upgrade","at_ms":1767225600000}`)
	s := etcd.shell()
	s.conch("status", "backup")
	contains(t, s.stdout.String(), "\ncron all jobs: nothing is claimed: paused by eve since 2026-01-01T00:00:00Z: upgrade\n")
}

func TestStatusOfJobsInJSON(t *testing.T) {
	t.Parallel()
	s := newCron(t).shell()
	if code := s.conch("status", "--kind", "cron", "--json"); code != 0 || s.stderr.String() != "" {
		t.Errorf("code %d; %s", code, s.stderr.String())
	}
	var got []string
	for line := range strings.Lines(s.stdout.String()) {
		var l view.Line
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s %s %s %q", l.Kind, l.Name, l.State, l.Host)
		if l.Run != nil {
			text += fmt.Sprintf(" %s %s %s %d %s", l.Run.ID, l.Run.Tick, l.Run.Kind, l.Run.Attempt, l.Run.By)
		}
		if l.Pause != nil {
			text += fmt.Sprintf(" %s %q %s", l.Pause.By, l.Pause.Why, l.Pause.Until)
		}
		got = append(got, text)
	}
	equal(t, got, []string{
		`cron backup running "n1" 1767225600 2026-01-01T00:00:00Z scheduled 1 `,
		`cron clean settling "\x1b[2J" 1767225600.2 2026-01-01T00:00:00Z retry 2 ann`,
		`cron clean paused "" ann "moves\x1b[1m" 2999-01-01T00:00:00Z`,
		`cron idle paused "" bob "" `,
	})
}

func TestStatusNamesSoManyPausedJobs(t *testing.T) {
	t.Parallel()
	all := make([]view.Pause, pausesMost+3)
	for i := range all {
		all[i] = view.Pause{Job: fmt.Sprintf("j%02d", i), Stop: record.Stop{By: "ann"}}
	}
	lines := pauseLines(all)
	if len(lines) != pausesMost+1 || lines[0] != "cron j00: paused by ann" || lines[pausesMost] != "cron: 3 more jobs are paused" {
		t.Errorf("got %q", lines)
	}
}

func TestStatusWatchTellsWhatBecomesOfRuns(t *testing.T) {
	t.Parallel()
	etcd := newCron(t)
	s, out, lines := etcd.shell(), make(reader, 99), make(reader, 99)
	codes := []<-chan int{
		s.startTo(out, "status", "--watch", "--kind", "cron", "backup", "clean"), s.startTo(lines, "status", "--watch", "--kind", "cron", "--json", "backup"),
	}
	// Runs and jobs are followed side by side.
	first := out.next(t) + out.next(t) + out.next(t)
	contains(t, first, "  cron backup  running on n1: 2026-01-01T00:00:00Z, scheduled, attempt 1",
		`  cron clean  settling on \x1b[2J: 2026-01-01T00:00:00Z, retry, attempt 2, id 1767225600.2`, "  cron clean: paused by ann since ")
	contains(t, lines.next(t), `{"kind":"cron","name":"backup",`, `"state":"running","host":"n1",`, `"run":{"id":"1767225600",`, `"at":"20`)

	// What ends goes in one step, and what has lost its marker is settled later. Another job is nobody's business.
	tick := record.ID{Tick: testTime.Unix()}
	etcd.starts(t, "other", tick, record.Open{Host: "n1"})
	ended := []clientv3.Op{clientv3.OpDelete(record.OpenKey("backup", tick)), clientv3.OpDelete(record.Key(record.Runs, "backup", tick))}
	if _, err := etcd.client.Txn(t.Context()).Then(ended...).Commit(); err != nil {
		t.Fatal(err)
	}
	contains(t, out.next(t), "  cron backup  over on n1: 2026-01-01T00:00:00Z, scheduled, attempt 1")
	contains(t, lines.next(t), `"name":"backup",`, `"state":"over"`)
	etcd.put(t, record.JobKey("clean"), `{}`)
	contains(t, out.next(t), "  cron clean: not paused any more")
	etcd.put(t, record.Pause, `{"by":"eve"}`)
	contains(t, out.next(t), "  cron all jobs: nothing is claimed: paused by eve")
	contains(t, lines.next(t), `"name":"",`, `"state":"paused"`, `"pause":{"by":"eve"}`)
	etcd.put(t, record.Pause, `{"by":"eve","resumed_ms":1}`)
	contains(t, out.next(t), "  cron all jobs: not paused any more")
	contains(t, lines.next(t), `"state":"resumed"`)

	for range codes {
		s.signals <- syscall.SIGTERM
	}
	for _, code := range codes {
		if c := wait(t, code); c != 143 || s.stderr.String() != "" {
			t.Errorf("code %d, stderr %q", c, s.stderr.String())
		}
	}
	if len(out) != 0 || len(lines) != 0 {
		t.Errorf("%d and %d lines more", len(out), len(lines))
	}
	r := etcd.shell()
	if c := wait(t, r.startTo(broken{}, "status", "--watch", "--kind", "cron")); c != 74 {
		t.Errorf("code %d", c)
	}
}

func TestAScreenShowsWhatRuns(t *testing.T) {
	t.Parallel()
	f := &statusFlags{kind: "cron", names: []string{"backup"}}
	s, out := drawn(10, 200, f)
	s.missing = map[string]bool{ofRuns: true, ofJobs: true}
	runs, jobs := view.NewRoster(), view.NewRoster()
	runs.Put(record.OpenKey("backup", record.ID{Tick: testTime.Unix()}), []byte(`{"host":"n1","kind":"manual","attempt":1}`), 9)
	runs.Put(record.OpenKey("other", record.ID{Tick: testTime.Unix()}), []byte(`{}`), 9)
	jobs.Put(record.JobKey("backup"), []byte(`{"paused":{"by":"ann"}}`), 1)
	draw := func() {
		t.Helper()
		if err := s.draw(testTime); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.jobs(ofRuns, runs); err != nil {
		t.Fatal(err)
	}
	if draw(); out.String() != "" {
		t.Errorf("drawn before all is known: %q", out.String())
	}
	if err := s.jobs(ofJobs, jobs); err != nil {
		t.Fatal(err)
	}
	draw()
	contains(t, out.String(), "cron  backup  -     settling  n1    -", "2026-01-01T00:00:00Z, manual, attempt 1", "cron backup: paused by ann")
	if strings.Contains(out.String(), "other") {
		t.Errorf("drawn: %q", out.String())
	}
	if all := s.overview(); len(all.leases()) != 1 || len(all.pauses) != 1 || all.nothing() {
		t.Errorf("got %+v", all)
	}
	// A pause comes to its end without a word from etcd.
	s.pauses[ofJobs][0].Stop.Until = time.Now().UnixMilli()
	if all := s.overview(); len(all.pauses) != 0 {
		t.Errorf("got %+v", all.pauses)
	}
}
