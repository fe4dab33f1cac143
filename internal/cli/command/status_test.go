package command

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// settled is an etcd of its own in which something is held, with whatever belongs to it.
type settled struct {
	server *etcdtest.Server
	client *clientv3.Client
	lease  clientv3.LeaseID
}

func (s settled) put(t *testing.T, key, value string, o ...clientv3.OpOption) {
	t.Helper()
	if _, err := s.client.Put(t.Context(), key, value, o...); err != nil {
		t.Fatal(err)
	}
}

func (s settled) shell() *shell {
	return newShell("CONCH_ENDPOINTS="+s.server.Endpoint(), "CONCH_TTL=60s")
}

// newSettled holds an office and a slot; another slot is free, and the other office vacant.
func newSettled(t *testing.T) settled {
	t.Helper()
	server := etcdtest.One(t)
	s := settled{server: server, client: server.Client(t)}
	granted, err := s.client.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	s.lease = granted.ID
	on := clientv3.WithLease(s.lease)
	holder := func(host string) string { return hold.NewHolder(host, 42, testTime, []string{"job", host}).Encode() }
	record := `{"lease":"` + hold.FormatLease(int64(s.lease)) + `","n":1,"ttl":10,"at":"2026-01-01T00:00:00Z"}`

	s.put(t, hold.ElectKey("reports", int64(s.lease)).String(), holder("a"), on)
	open, _ := hold.OfficeKeys("reports")
	s.put(t, open.String(), record)
	s.put(t, hold.ElectKey("reports", 1).String(), holder("b"))
	_, last := hold.OfficeKeys("vip")
	s.put(t, last.String(), `{"rev":7,"holder":`+holder("c")+`,"how":"released","at":"2026-01-01T00:00:00Z"}`)

	s.put(t, hold.SemaKey("uploads", 3, int64(s.lease)).String(), holder("d"), on)
	s.put(t, hold.SlotKey("uploads", 3, 1).String(), "", on)
	for _, lease := range []int64{2, 3, 4} {
		s.put(t, hold.SemaKey("uploads", 3, lease).String(), holder("w"))
	}
	s.put(t, coord.HostsPrefix+"u-1", `{"hostname":"h1","version":"10.2","started_at_unix_ns":1767225600000000000}`, on)
	return s
}

// table is the rows of a table, their cells joined by single spaces.
func table(text string) (rows []string) {
	for line := range strings.Lines(text) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	return rows
}

func TestStatusTellsEverythingAtAGlance(t *testing.T) {
	t.Parallel()
	etcd := newSettled(t)
	const (
		head    = `KIND NAME SLOT STATE HOST AGE TTL LEFT WAITING PID REV CMD OR LAST HOLD`
		reports = `elect reports - held a \d+d\d\dh \d+m\d+s 1 42 \d+ job a`
		vip     = `elect vip - vacant - - - - - - last held by c pid 42 \(job c\), token 7, released 2026-01-01T00:00:00Z`
		uploads = `sema uploads 1/3 held d - \d+m\d+s 3 42 \d+ job d`
		host    = `host u-1 - up h1 \d+d\d\dh \d+m\d+s - - \d+ version 10.2`
	)
	for args, tt := range map[string]struct {
		code int
		rows []string
	}{
		"":                         {0, []string{head, reports, vip, uploads, host}},
		"--kind elect":             {0, []string{head, reports, vip}},
		"--kind sema":              {0, []string{head, uploads}},
		"--kind host":              {0, []string{head, host}},
		"reports u-1":              {0, []string{head, reports, host}},
		"h1 h1":                    {0, []string{head, host}},
		"vip":                      {1, []string{head, vip}},
		"nothing":                  {1, []string{`nothing is held, no job runs, and no host is up`}},
		"nothing --kind elect":     {1, []string{`nothing is held`}},
		"nothing --kind host":      {1, []string{`no host is up`}},
		"uploads vip --kind elect": {1, []string{head, vip}},
	} {
		t.Run(args, func(t *testing.T) {
			s := etcd.shell()
			if code := s.conch(append([]string{"status"}, strings.Fields(args)...)...); code != tt.code || s.stderr.String() != "" {
				t.Errorf("code %d, want %d; %s", code, tt.code, s.stderr.String())
			}
			matches(t, table(s.stdout.String()), tt.rows)
		})
	}
}

// matches asserts that each line is what a pattern says.
func matches(t *testing.T, lines, patterns []string) {
	t.Helper()
	if len(lines) != len(patterns) {
		t.Fatalf("got %q, want %q", lines, patterns)
	}
	for i, want := range patterns {
		if !regexp.MustCompile(`^` + want + `$`).MatchString(lines[i]) {
			t.Errorf("got %q, want %q", lines[i], want)
		}
	}
}

func TestStatusInJSONHasTheNamesOfWho(t *testing.T) {
	t.Parallel()
	etcd := newSettled(t)
	s := etcd.shell()
	if code := s.conch("status", "-o", "json"); code != 0 {
		t.Errorf("code %d; %s", code, s.stderr.String())
	}
	var got []string
	for line := range strings.Lines(s.stdout.String()) {
		var one struct {
			Kind, Name, State, Host string
			Slot                    *int
			TTLLeft                 int64 `json:"ttl_left_ms"`
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		if (one.TTLLeft > 0) != (one.State == "held" || one.State == "up") {
			t.Errorf("ttl_left_ms is wrong: %s", line)
		}
		got = append(got, strings.Join([]string{one.Kind, one.Name, one.State, one.Host}, " "))
	}
	equal(t, got, []string{
		"elect reports held a", "elect reports waiting b", "elect vip vacant ", "sema uploads held d", "sema uploads waiting w",
		"sema uploads waiting w", "sema uploads waiting w", "host u-1 up h1",
	})
	// --who says of a name what status says of it.
	who := etcd.shell()
	who.conch("elect", "reports", "--who", "--json")
	left := regexp.MustCompile(`"ttl_left_ms":-?\d+`)
	if all := left.ReplaceAllString(s.stdout.String(), ""); !strings.HasPrefix(all, left.ReplaceAllString(who.stdout.String(), "")) {
		t.Errorf("got %s, want what --who says: %s", all, who.stdout.String())
	}
	s = etcd.shell()
	if code := s.conch("status", "--json", "nothing"); code != 1 || s.stdout.String() != "" {
		t.Errorf("code %d, %q", code, s.stdout.String())
	}
}

func TestStatusSaysWhatIsNotAsItShouldBe(t *testing.T) {
	t.Parallel()
	etcd := newSettled(t)
	open, _ := hold.OfficeKeys("vip")
	etcd.put(t, open.String(), `{"lease":"7b","ttl":10,"holder":{"host":"gone","pid":9,"started":"2026-01-01T00:00:00Z"}}`)
	etcd.put(t, hold.SemaKey("uploads", 4, 9).String(), "")
	etcd.put(t, hold.ElectRange("reports")+"1/2", "")
	etcd.put(t, hold.AreaRange(hold.AreaElect)+"\x1b[2J/1", "")
	s := etcd.shell()
	if code := s.conch("status"); code != 0 {
		t.Errorf("code %d", code)
	}
	contains(t, s.stdout.String(),
		"\nelect vip: unsettled: gone pid 9, lease 7b, has not said that nothing of it is left; the next holder waits for that, 10s at most\n",
		"\nsema uploads: in use with max 3, 4 at the same time: nobody else enters while that is so\n",
		"\nelect reports: odd key: /conch/v1/elect/reports/1/2\n", "\nodd key: /conch/v1/elect/\\x1b[2J/1\n")
	s = etcd.shell()
	s.conch("status", "--json")
	contains(t, s.stdout.String(), `"name":"","max":null,"slot":null,"state":"odd",`, `"value":"/conch/v1/elect/\\x1b[2J/1"`)
}

func TestStatusRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"../x":              `name "../x"`,
		"a b/c":             `name "b/c"`,
		"--kind lock":       `--kind "lock": want all or elect or sema or cron or host`,
		"--output yaml":     `want table or json`,
		"--watch=sometimes": `--watch "sometimes"`,
	} {
		s := newShell("CONCH_ENDPOINTS=" + etcdtest.Untouched(t))
		if code := s.conch(append([]string{"status"}, strings.Fields(line)...)...); code != hold.CodeUsage || strings.Count(s.stderr.String(), "\n") != 1 {
			t.Errorf("%s: code %d, %q", line, code, s.stderr.String())
		}
		contains(t, s.stderr.String(), want)
	}
}

func TestStatusDoesNotAnswerWithoutEtcd(t *testing.T) {
	t.Parallel()
	for _, watch := range []string{"--watch=false", "--watch"} {
		for _, endpoint := range []string{etcdtest.Refused(t), etcdtest.Silent(t)} {
			s := newShell("CONCH_ENDPOINTS=" + endpoint)
			if code := s.conch("status", watch, "--dial-timeout", "200ms"); code != hold.CodeUnreachable || s.stdout.String() != "" {
				t.Errorf("%s: code %d, %q", watch, code, s.stdout.String())
			}
		}
	}
}

func TestStatusTakesNoMoreThanItIsAskedFor(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	open, last := hold.OfficeKeys("o")
	addUser(t, root, "one", grants{hold.ElectRange("o"): readOnly, open.String(): readOnly, last.String(): readOnly})
	addUser(t, root, "offices", grants{
		hold.AreaRange(hold.AreaElect): readOnly, hold.AreaRange(hold.AreaOpen) + "elect/": readOnly, hold.AreaRange(hold.AreaLast) + "elect/": readOnly,
	})
	addUser(t, root, "hosts", grants{coord.HostsPrefix: readOnly})
	addUser(t, root, "jobs", grants{record.Root: readOnly})
	addUser(t, root, "job", grants{
		record.Range(record.Runs, "o"): readOnly, record.Opens + "o/": readOnly, record.Opens + "o@": readOnly, record.JobKey("o"): readOnly, record.Pause: readOnly,
	})
	addUser(t, root, "everything", grants{hold.Root: readOnly, coord.HostsPrefix: readOnly})
	for _, tt := range []struct {
		user, args string
		code       int
		missing    string
	}{
		{"everything", "", 1, ""},
		{"one", "o --kind elect", 1, ""},
		{"one", "o", 77, `user "one" may not read the prefix /conch/v1/sema/o/, read the prefix /conch/v1/slot/o/, `},
		{"one", "--kind elect", 77, `may not read the prefix /conch/v1/elect/, read the prefix /conch/v1/open/elect/, read the prefix /conch/v1/last/elect/`},
		{"offices", "--kind elect", 1, ""},
		{"offices", "", 77, `read the prefix /coord/hosts/`},
		{"offices", "--watch --kind elect", 77, `may not read the prefix /conch/v1/`},
		{"hosts", "--kind host", 1, ""},
		{"jobs", "--kind cron", 1, ""},
		{"jobs", "", 77, `may not read the prefix /conch/v1/elect/`},
		{"job", "o --kind cron", 1, ""},
		{"job", "o b --kind cron", 77, `may not read the prefix /conch/v1/cron/run/b/, read the prefix /conch/v1/cron/state/open/b/, read the prefix /conch/v1/cron/state/open/b@, read /conch/v1/cron/job/b`},
		{"job", "--watch --kind cron", 77, `may not read the prefix /conch/v1/cron/`},
		{"hosts", "", 77, `may not read the prefix /conch/v1/elect/`},
	} {
		s := as(server, tt.user)
		if code := s.conch(append([]string{"status"}, strings.Fields(tt.args)...)...); code != tt.code || (tt.code == 77) != (s.stdout.String() == "") {
			t.Errorf("%s: %s: code %d, want %d; %q, %q", tt.user, tt.args, code, tt.code, s.stdout.String(), s.stderr.String())
		}
		contains(t, s.stderr.String(), tt.missing)
	}
}

func TestAges(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 59*time.Second + 900*time.Millisecond: "59s", time.Minute: "1m00s", time.Hour - 1: "59m59s",
		3*time.Hour + 7*time.Minute: "3h07m", 24 * time.Hour: "1d00h", 400*24*time.Hour + 23*time.Hour: "400d23h",
	} {
		if got := age(testTime, testTime.Add(d)); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
	if got := age(time.Time{}, testTime); got != "-" {
		t.Errorf("got %s", got)
	}
}

func TestStatusWatchTellsWhatIsHeldAndThenEachChange(t *testing.T) {
	t.Parallel()
	etcd := newSettled(t)
	s, out, lines := etcd.shell(), make(reader, 99), make(reader, 99)
	codes := []<-chan int{s.startTo(out, "status", "--watch"), s.startTo(lines, "status", "--watch", "--json")}
	// Names and hosts are followed side by side: their lines come in any order at first.
	next := func(r reader, n int) (all []string) {
		t.Helper()
		for range n {
			all = append(all, r.next(t))
		}
		slices.Sort(all)
		return all
	}
	want := func(r reader, patterns ...string) {
		t.Helper()
		got := next(r, len(patterns))
		for _, p := range patterns {
			if !slices.ContainsFunc(got, regexp.MustCompile(p).MatchString) {
				t.Errorf("got %q, want %s", got, p)
			}
		}
	}
	want(out, `^20\S+Z  elect reports  held by a pid 42 \(job a\), token \d+$`, `^20\S+Z  sema uploads  slot 1 of 3 held by d pid 42`, `^20\S+Z  host  u-1  up h1$`)
	want(lines, `^{"kind":"elect","name":"reports",.*"state":"held",.*"at":"20[^"]+Z"`, `^{"kind":"sema","name":"uploads","max":3,"slot":1,"state":"held"`, `^{"kind":"host","name":"u-1",.*"state":"up","host":"h1"`)

	// Everything on that lease ends in one step. Who waited behind it in the office leads.
	if _, err := etcd.client.Revoke(t.Context(), etcd.lease); err != nil {
		t.Fatal(err)
	}
	want(out, `  elect reports  next is b pid 42 .*, which waits for the end of an earlier hold: `, `  sema uploads  slot 1 of 3 vacant; last held by d pid 42 .*, which has not said how it ended$`, `  host  u-1  down h1 \(expired\)$`)
	want(lines, `"name":"reports",.*"state":"settling","host":"b"`, `"name":"uploads","max":3,"slot":1,"state":"vacant",.*"last":{"host":"d",.*"how":""`, `"name":"u-1",.*"state":"down","host":"h1",.*"reason":"expired"}$`)

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
}

func TestStatusWatchTellsOnlyWhatItWasAskedFor(t *testing.T) {
	t.Parallel()
	etcd := newSettled(t)
	s, out := etcd.shell(), make(reader, 99)
	code := s.startTo(out, "status", "--watch", "--kind", "sema", "uploads", "reports")
	contains(t, out.next(t), "sema uploads  slot 1 of 3 held by d")
	etcd.put(t, hold.ElectKey("reports", 9).String(), "")
	etcd.put(t, hold.SlotKey("downloads", 3, 1).String(), "")
	etcd.put(t, hold.SlotKey("uploads", 3, 2).String(), "")
	contains(t, out.next(t), "sema uploads  slot 2 of 3 lost by an unknown holder, token ", ", which has not left yet")
	s.signals <- syscall.SIGINT
	if c := wait(t, code); c != 130 || len(out) != 0 {
		t.Errorf("code %d, %d lines more", c, len(out))
	}
}

func TestStatusWatchEndsQuietlyWhenNobodyReads(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s := newSettled(t).shell()
	code := s.startTo(w, "status", "--watch")
	if n, err := r.Read(make([]byte, 1000)); n == 0 || err != nil {
		t.Fatal(err)
	}
	r.Close()
	if c := wait(t, code); c != 0 || s.stderr.String() != "" {
		t.Errorf("code %d, stderr %q", c, s.stderr.String())
	}
}

func TestStatusWatchSaysWhatItCannotPrint(t *testing.T) {
	t.Parallel()
	s := newSettled(t).shell()
	if c := wait(t, s.startTo(broken{}, "status", "--watch")); c != hold.CodeUnprinted {
		t.Errorf("code %d", c)
	}
	contains(t, s.stderr.String(), "the answer could not be printed: broken pipe")
}

func TestStatusWatchSaysWhenItsViewIsOld(t *testing.T) {
	t.Parallel()
	etcd := newSettled(t)
	proxy := etcdtest.NewProxy(t, etcd.server.Endpoint())
	s, out, warned := newShell("CONCH_ENDPOINTS="+proxy.Addr()), make(reader, 99), make(reader, 99)
	code := s.startWith(out, warned, "status", "--watch", "reports", "u-1", "--quiet")
	out.next(t)
	out.next(t)
	proxy.Cut()
	all := warned.next(t) + warned.next(t) + warned.next(t) + warned.next(t)
	contains(t, all, "level=WARN", "etcd does not answer: what was printed last may be out of date", "of=holds", "of=hosts", "of=runs", "of=jobs")
	proxy.Revive()
	all = warned.next(t) + warned.next(t) + warned.next(t) + warned.next(t)
	contains(t, all, "etcd answers again", "of=holds", "of=hosts", "of=runs", "of=jobs")
	s.signals <- syscall.SIGTERM
	if c := wait(t, code); c != 143 || len(out) != 0 {
		t.Errorf("code %d, %d lines more", c, len(out))
	}
}

// drawn is a screen that draws into memory.
func drawn(rows, columns int, f *statusFlags) (*screen, *text) {
	out := &text{}
	return &screen{
		to: out, size: func() (int, int) { return rows, columns }, f: f, changed: make(chan struct{}, 1), missing: map[string]bool{},
		runs: map[string][]view.Run{}, pauses: map[string][]view.Pause{},
		names: map[view.Name]view.Standing{}, since: map[string]time.Time{},
	}, out
}

// picture is what stands on a terminal after what was written last: the rows of the last frame.
func picture(t *testing.T, written string) (rows []string) {
	t.Helper()
	frames := strings.Split(written, "\x1b[?7l")
	last, restored := strings.CutSuffix(frames[len(frames)-1], "\x1b[J\x1b[?7h")
	if !restored {
		t.Fatalf("the last frame does not end: %q", written)
	}
	for i, row := range regexp.MustCompile(`\x1b\[(\d+);1H(\x1b\[2K)?`).Split(last, -1) {
		if i > 0 {
			rows = append(rows, row)
		}
	}
	return rows[:len(rows)-1] // where the cursor is left
}

func TestAScreenNeverWrapsAndKeepsALineForTheCursor(t *testing.T) {
	t.Parallel()
	f := &statusFlags{kind: anyKind}
	for _, tt := range []struct{ rows, columns, want int }{{24, 200, 7}, {6, 20, 5}, {3, 1, 2}, {1, 1, 2}} {
		s, out := drawn(tt.rows, tt.columns, f)
		for _, name := range []string{"a", "b", "c", "d"} {
			n := view.Name{Kind: hold.KindElect, Name: name}
			s.names[n] = view.Stand(n, []view.Entry{{Key: hold.ElectKey(name, 1).String(), Holder: hold.NewHolder("häst\u202e", 1, testTime, []string{strings.Repeat("語", 300)})}}, 1)
		}
		if err := s.draw(testTime); err != nil {
			t.Fatal(err)
		}
		rows := picture(t, out.String())
		if len(rows) != tt.want {
			t.Errorf("%dx%d: %d rows, want %d: %q", tt.rows, tt.columns, len(rows), tt.want, rows)
		}
		for _, row := range rows {
			if n := len([]rune(row)); n > tt.columns || strings.ContainsAny(row, "\x1b\n\u202e") {
				t.Errorf("%dx%d: a row of %d: %q", tt.rows, tt.columns, n, row)
			}
		}
		if tt.rows == 6 && rows[4] != "... and 3 lines more" {
			t.Errorf("the last row is %q", rows[4])
		}
		// What stood there before is in the terminal's history, once.
		if n := strings.Count(out.String(), "\n"); n != tt.rows-1 {
			t.Errorf("%d lines were pushed up, want %d", n, tt.rows-1)
		}
		_ = s.draw(testTime)
		if n := strings.Count(out.String(), "\n"); n != tt.rows-1 {
			t.Errorf("%d lines were pushed up by the second picture", n-tt.rows+1)
		}
	}
}

func TestAScreenSaysSinceWhenEtcdIsSilent(t *testing.T) {
	t.Parallel()
	s, out := drawn(24, 80, &statusFlags{kind: hold.KindHost})
	s.missing[ofHosts] = true
	if err := s.draw(testTime); err != nil || out.String() != "" {
		t.Errorf("drawn before anything is known: %q, %v", out.String(), err)
	}
	delete(s.missing, ofHosts)
	_ = s.draw(testTime)
	equal(t, picture(t, out.String()), []string{"as of 2026-01-01T00:00:00Z", "", "no host is up"})
	s.since[ofHolds], s.since[ofHosts] = testTime.Add(time.Second), testTime
	_ = s.draw(testTime.Add(time.Minute))
	equal(t, picture(t, out.String())[:1], []string{"etcd does not answer since 2026-01-01T00:00:00Z: what follows may be out of date"})
	s.fresh(ofHosts)
	s.fresh(ofHolds)
	_ = s.draw(testTime.Add(time.Minute))
	equal(t, picture(t, out.String())[:1], []string{"as of 2026-01-01T00:01:00Z"})
	s.to = broken{}
	if err := s.draw(testTime); err == nil {
		t.Error("what could not be drawn is no error")
	}
}
