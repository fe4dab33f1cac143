package command

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// Nothing is contacted for what makes no sense.
func TestCronUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"run"}, "no job given: conch cron run NAME [flags]"},
		{[]string{"run", "x", "--within", "0s"}, `--within "0s": want a duration above 0, such as 1m`},
		{[]string{"run", "x", "--why", "a\nb"}, `--why "a\nb": want one line of at most 200 bytes`},
		{[]string{"run", "x", "--why", strings.Repeat("y", 201)}, `want one line of at most 200 bytes`},
		{[]string{"ps", "x", "y"}, `one job is accepted, got "y" too`},
		{[]string{"ps", "x/y"}, `name "x/y"`},
		{[]string{"kill"}, "no job given: conch cron kill NAME [TICK|ID] [flags]"},
		{[]string{"kill", "x", "it"}, `"it": want an id as ps and history print it`},
		{[]string{"kill", "x/y"}, `name "x/y"`},
		{[]string{"log", "x/y"}, `name "x/y"`},
		{[]string{"pause"}, "no job given: conch cron pause NAME...|--all [flags]"},
		{[]string{"pause", "x", "--all"}, `--all: goes without names, got "x"`},
		{[]string{"pause", "x", "x/y"}, `name "x/y"`},
		{append([]string{"pause"}, strings.Fields(strings.Repeat("x ", pauseNames+1))...), "1001 jobs given, at most 1000 are accepted"},
		{[]string{"resume"}, "no job given: conch cron resume NAME...|--all [flags]"},
		{[]string{"backfill"}, "no job given: conch cron backfill NAME --from TIME --to TIME [flags]"},
		{[]string{"backfill", "x", "--from", "1", "--to", "2", "--why", "a\x7f"}, `--why "a\x7f": want one line`},
		{[]string{"nodes", "x"}, `nodes takes no argument, got "x"`},
		{[]string{"drain"}, "no host given: conch cron drain HOST [flags]"},
		{[]string{"drain", "a", "b"}, `one host is accepted, got "b" too`},
		{[]string{"drain", "a/b"}, `name "a/b"`},
		{[]string{"undrain"}, "no host given: conch cron undrain HOST [flags]"},
		{[]string{"history", "x", "-n", "0"}, `--number "0": want a whole number from 1 to 100000`},
		{[]string{"why", "x", "1", "2"}, `one more argument is accepted behind the job, got "2" too`},
	} {
		s := newShell("CONCH_ENDPOINTS=" + etcdtest.Untouched(t))
		if code := s.conch(append([]string{"cron"}, tt.args...)...); code != 64 {
			t.Errorf("%q: code %d", tt.args, code)
		}
		contains(t, s.stderr.String(), tt.want)
	}
	for _, verb := range []string{"run", "ps", "log", "history", "why", "kill", "pause", "resume", "backfill", "nodes", "drain", "undrain"} {
		s := newShell("CONCH_DIAL_TIMEOUT=never")
		args := []string{"cron", verb, "x"}
		if verb == "nodes" {
			args = args[:2]
		}
		if code := s.conch(args...); code != 64 {
			t.Errorf("%s: code %d", verb, code)
		}
		contains(t, s.stderr.String(), `CONCH_DIAL_TIMEOUT "never"`)
	}
}

// Where etcd is away there is no answer, of any verb.
func TestCronWithoutEtcd(t *testing.T) {
	t.Parallel()
	endpoint := etcdtest.Refused(t)
	for _, args := range [][]string{
		{"run", "x"}, {"ps"}, {"log", "x"}, {"history", "x"}, {"why", "x"}, {"kill", "x"}, {"pause", "x"}, {"pause", "--all"}, {"resume", "x"},
		{"backfill", "x", "--from", "1", "--to", "2"}, {"nodes"}, {"drain", "a"}, {"undrain", "a"},
	} {
		s := newShell("CONCH_ENDPOINTS="+endpoint, "CONCH_DIAL_TIMEOUT=50ms")
		if code := s.conch(append([]string{"cron"}, args...)...); code != 69 || s.stdout.String() != "" {
			t.Errorf("%q: code %d, %q, %q", args, code, s.stdout.String(), s.stderr.String())
		}
	}
}

func TestCronCompletesJobsNodesAndRuns(t *testing.T) {
	t.Parallel()
	c := newCronCluster(t)
	c.add("backup", `{"schedule":"@manual","cmd":["true"]}`)
	c.add("report", `{"schedule":"@manual","cmd":["true"]}`)
	c.put(record.Nodes+"node1", "{}")
	c.put(record.Drains+"node2", "{}")
	c.put(record.OpenKey("backup", record.ID{Tick: 7, N: 1}), "{}")
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"run", ""}, []string{"backup", "report"}},
		{[]string{"history", "b"}, []string{"backup"}},
		{[]string{"run", "backup", ""}, nil},
		{[]string{"pause", "backup", "r"}, []string{"report"}},
		{[]string{"drain", ""}, []string{"node1"}},
		{[]string{"undrain", ""}, []string{"node2"}},
		{[]string{"kill", "backup", ""}, []string{"7.1"}},
		{[]string{"kill", "backup", "8"}, nil},
		{[]string{"kill", "b"}, []string{"backup"}},
		{[]string{"run", "/"}, nil},
	} {
		s := c.shell()
		if code := s.conch(append([]string{"__completeNoDesc", "cron"}, tt.args...)...); code != 0 {
			t.Errorf("%q: code %d", tt.args, code)
		}
		var got []string
		for line := range strings.Lines(s.stdout.String()) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, ":") {
				got = append(got, line)
			}
		}
		equal(t, got, tt.want)
	}
}

// What the request of a start became is said where etcd did not answer, and it is not made again.
func TestARequestThatIsNotAnsweredIsMadeOnce(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	rev, err := m.Put(record.JobKey("x"), `{"schedule":"@manual","cmd":["true"]}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	tried := m.Inject(coordtest.Rule{
		Method: coordtest.Txn, Times: coordtest.Forever, Action: coordtest.Refuse(coordtest.Unavailable("")),
		When: func(c *coordtest.Call) bool { r := c.Request.(*pb.TxnRequest); return len(r.Compare) > 0 },
	})
	client := m.Client(t)
	k, err := lookJob(t.Context(), client, "x")
	if err != nil || k.SpecRev != rev {
		t.Fatal(k, err)
	}
	ids, err := askFor(t.Context(), client, "x", 1000, record.Want{Kind: record.Manual})
	if err == nil || len(ids) != 0 || tried.Hits() != 1 {
		t.Errorf("%v %v, tried %d times", ids, err, tried.Hits())
	}
	tried.Remove()

	// A pause that comes in between is seen.
	m.Inject(coordtest.Rule{
		Method: coordtest.Txn, When: func(c *coordtest.Call) bool { r := c.Request.(*pb.TxnRequest); return len(r.Compare) > 0 },
		Action: coordtest.Before(func() { _, _ = m.Put(record.Pause, `{"by":"me"}`, 0) }),
	})
	if _, err := askFor(t.Context(), client, "x", 1000, record.Want{Kind: record.Manual}); err == nil || err.Error() != "all jobs are paused by me" || len(m.Keys(record.Wants)) != 0 {
		t.Errorf("%v %v", err, m.Keys(record.Wants))
	}
}

// Who waits is told when etcd falls silent, and when nobody is there who could say that a request was missed.
func TestWaitingInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := coordtest.Start(t, coordtest.Options{})
		var said text
		log := slog.New(slog.NewTextHandler(&said, nil))
		if _, err := m.Put(record.Wants+"x/1000.1", record.Encode(record.Want{Kind: record.Manual}), 0); err != nil {
			t.Fatal(err)
		}
		w := &awaited{job: "x", id: record.ID{Tick: 1000, N: 1}, until: time.Now().Add(time.Minute), log: log}
		if _, err := w.end(t.Context(), m.Client(t)); err == nil || err.Error() != "nobody has taken x/1000.1, and 0 nodes are registered; the request stays until one records it as missed" {
			t.Error(err)
		}
		if said.String() != "" {
			t.Errorf("said %q", said.String())
		}

		// It is taken in the last moment, then etcd is silent for a while, then it ends.
		w.until = time.Now()
		done := make(chan record.Result)
		go func() {
			r, err := w.end(t.Context(), m.Client(t))
			if err != nil {
				t.Error(err)
			}
			done <- r
		}()
		time.Sleep(time.Second)
		m.Delete(record.Wants + "x/1000.1")
		if _, err := m.Put(record.OpenKey("x", w.id), "{}", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		silence := m.Inject(coordtest.Rule{Times: coordtest.Forever, Action: coordtest.LoseRequest()})
		time.Sleep(time.Minute)
		silence.Remove()
		time.Sleep(time.Minute)
		if _, err := m.Put(record.Results+"x/1000.1", record.Encode(record.Result{Status: record.Success}), 0); err != nil {
			t.Fatal(err)
		}
		if r := <-done; r.RunID != "x/1000.1" {
			t.Errorf("%+v", r)
		}
		contains(t, said.String(), staleText, "etcd answers again")
	})
}

// Attempts that follow are waited for wherever they are: asked for, running or over. Each is red when its look is left out.
func TestAnotherAttemptIsWaitedFor(t *testing.T) {
	t.Parallel()
	id := record.ID{Tick: 1000, N: 1}
	retry := record.Encode(record.Want{Kind: record.Retry, Attempt: 2})
	for name, tt := range map[string]struct {
		key, value string
		want       bool
	}{
		"nothing":               {record.Fires + "x/1000.2", retry, false},
		"asked for":             {record.Wants + "x/1000.2", retry, true},
		"running":               {record.Opens + "x/1000.2", retry, true},
		"over":                  {record.Results + "x/1000.2", retry, true},
		"another one's request": {record.Wants + "x/1000.2", `{"kind":"manual"}`, false},
		"another one's run":     {record.Opens + "x/1000.2", `{"kind":"manual"}`, false},
		"another one's result":  {record.Results + "x/1000.2", `{"kind":"manual"}`, false},
	} {
		m := coordtest.Start(t, coordtest.Options{})
		if _, err := m.Put(tt.key, tt.value, 0); err != nil {
			t.Fatal(err)
		}
		w := &awaited{job: "x", id: id}
		if got, err := w.again(t.Context(), m.Client(t), record.Result{Status: record.Failed}); got != tt.want || err != nil {
			t.Errorf("%s: %v %v", name, got, err)
		}
		m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
		if _, err := w.again(t.Context(), m.Client(t), record.Result{Status: record.Failed}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got, err := w.again(t.Context(), m.Client(t), record.Result{Status: record.Success}); got || err != nil {
			t.Errorf("%s: %v %v after a success", name, got, err)
		}
	}
}
