package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cron"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
	"github.com/go-coord/coord/internal/hold/shared"
)

// lease is a hold that lasts until the test ends it.
type lease struct{ lost chan struct{} }

func (l lease) Info() hold.Info {
	return hold.Info{Kind: "cron", Name: "j", Rev: 42, Lease: 0x1f, Slot: -1, TTL: time.Hour}
}
func (l lease) Deadlines() hold.Deadlines {
	return hold.Deadlines{Term: coord.Now() + time.Hour, Kill: coord.Now() + 2*time.Hour}
}
func (l lease) Renewed() <-chan struct{}                { return nil }
func (l lease) Lost() <-chan struct{}                   { return l.lost }
func (l lease) Cause() error                            { return hold.ErrLost }
func (l lease) Evicted() <-chan error                   { return nil }
func (l lease) Release(context.Context, hold.End) error { return nil }
func (l lease) Testament() []byte                       { return []byte("{}") }

// shop is a worker with a real guard.
type shop struct {
	*testing.T
	w   *Worker
	log bytes.Buffer
}

func newShop(t *testing.T) *shop {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	pool := shared.New(func() (*guard.Client, error) {
		return guard.Start(guard.Options{Stdin: null, Stdout: null, Stderr: null, Env: []string{"GOCOVERDIR=" + os.Getenv("GOCOVERDIR")}})
	})
	s := &shop{T: t}
	s.w = New(Options{
		Pool: pool, Environ: []string{"INHERITED=yes", "PATH=/nowhere"}, Margin: 500 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	t.Cleanup(func() {
		if err := pool.Close(context.Background()); err != nil {
			t.Error(err)
		}
		_ = null.Close()
	})
	return s
}

func (s *shop) start(spec string, started func(int)) cron.Start {
	s.Helper()
	j, err := job.Parse("j", []byte(spec))
	if err != nil {
		s.Fatal(err)
	}
	if started == nil {
		started = func(int) {}
	}
	return cron.Start{Job: "j", Spec: j, ID: record.ID{Tick: 77}, Kind: record.Scheduled, Attempt: 2, Started: started}
}

func (s *shop) run(spec string) cron.Ended {
	s.Helper()
	return s.w.Run(context.Background(), s.start(spec, nil), lease{})
}

// script is a job that runs a shell script.
func script(text string, more ...string) string {
	raw, _ := json.Marshal(text)
	return fmt.Sprintf(`{"schedule":"@manual","script":%s%s}`, raw, strings.Join(more, ""))
}

func TestARunTellsAllAboutItself(t *testing.T) {
	s := newShop(t)
	pid := 0
	how := s.w.Run(context.Background(), s.start(script(`echo out; echo err >&2; exit 3`), func(p int) { pid = p }), lease{})
	if how.Code != 3 || how.Err != nil || how.Lost != nil || how.Unclean || how.Pid == 0 || how.Pid != pid || how.MaxRSS == 0 || how.Started.IsZero() {
		t.Errorf("%+v", how)
	}
	if how.Output != (record.Output{Tail: "out\nerr\n", Bytes: 8}) {
		t.Errorf("output %+v", how.Output)
	}
	if how = s.run(script(`kill -KILL $$`)); how.Signal != "SIGKILL" || how.Code != 137 {
		t.Errorf("%+v", how)
	}
	if s.log.Len() > 0 {
		t.Errorf("log: %s", &s.log)
	}
}

func TestWhatAJobSees(t *testing.T) {
	s := newShop(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	how := s.run(script(`echo "$A,$B,$INHERITED,$CONCH_NAME,$CONCH_REV,$CONCH_LEASE,$CONCH_TICK,$CONCH_ATTEMPT,$CONCH_KIND"; echo $PATH; umask; pwd; cat`,
		`,"env":{"A":"one","B":{"file":"`+secret+`"}},"umask":"0027","cwd":"/usr","stdin":"read me"`))
	want := "one,s3cret,,j,42,1f,77,2,scheduled\n" + standardPath + "\n0027\n/usr\nread me"
	if how.Output.Tail != want {
		t.Errorf("got %q\nwant %q (%v)", how.Output.Tail, want, how.Err)
	}
	how = s.run(script(`echo $INHERITED`, `,"env_inherit":true,"env":{"PATH":"/usr/bin:/bin"}`))
	if how.Output.Tail != "yes\n" {
		t.Errorf("%+v", how)
	}
}

func TestAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("this test needs root in CI")
		}
		t.Skip("needs root")
	}
	s := newShop(t)
	how := s.run(script(`id -un; id -Gn; echo $HOME $USER; touch /root/x 2>/dev/null || echo denied`, `,"user":"nobody"`))
	if lines := strings.Split(how.Output.Tail, "\n"); lines[0] != "nobody" || lines[1] != "nogroup" || !strings.HasSuffix(lines[2], " nobody") || lines[3] != "denied" {
		t.Errorf("%q, %v", how.Output.Tail, how.Err)
	}
	// A number is a user, too.
	if how = s.run(script(`id -un`, `,"user":"65534"`)); how.Output.Tail != "nobody\n" {
		t.Errorf("%q, %v", how.Output.Tail, how.Err)
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	s := newShop(t)
	empty := t.TempDir()
	for spec, want := range map[string]string{
		`{"schedule":"@manual","cmd":["no-such-command"]}`:              "command not found: no-such-command",
		`{"schedule":"@manual","cmd":["/etc/passwd"]}`:                  "command not executable",
		`{"schedule":"@manual","cmd":["true"],"user":"no.such.user"}`:   "user no.such.user is not known here",
		`{"schedule":"@manual","cmd":["true"],"cwd":"/no/such/folder"}`: "want a folder",
		script(`true`, `,"env":{"A":{"file":"/no/such/file"}}`):         "env A: ",
		script(`true`, `,"env":{"A":{"file":"`+empty+`"}}`):             "want a file of at most",
		script(`true`, `,"output":{"file":"/no/such/folder/x"}`):        "output file /no/such/folder/x",
		script(`true`, `,"output":{"file":"`+empty+`"}`):                "output file " + empty,
		script(`true`, `,"shell":"/no/such/shell"`):                     "command not found",
	} {
		how := s.run(spec)
		if how.Err == nil || !strings.Contains(how.Err.Error(), want) || !how.Started.IsZero() || strings.Contains(how.Err.Error(), "\n") {
			t.Errorf("%s: %+v", spec, how)
		}
	}
}

func TestTheEndOfTheContextEndsTheRun(t *testing.T) {
	s := newShop(t)
	ctx, cancel := context.WithCancel(context.Background())
	how := s.w.Run(ctx, s.start(script(`sleep 600 & wait`), func(int) { cancel() }), lease{})
	if how.Signal != "SIGTERM" || how.Unclean {
		t.Errorf("%+v", how)
	}
	how = s.w.Run(ctx, s.start(script(`true`), nil), lease{})
	if how.Err == nil || !how.Started.IsZero() {
		t.Errorf("after the end: %+v", how)
	}
	// One that does not want to.
	ctx, cancel = context.WithCancel(context.Background())
	spec := script(`trap "" TERM; echo ready; sleep 600 & wait; sleep 600`, `,"kill_after":"200ms"`)
	how = s.w.Run(ctx, s.start(spec, func(int) { cancel() }), lease{})
	if how.Signal == "" || how.Unclean {
		t.Errorf("%+v", how)
	}
}

func TestALossEndsTheRun(t *testing.T) {
	s := newShop(t)
	l := lease{make(chan struct{})}
	how := s.w.Run(context.Background(), s.start(script(`sleep 600`), func(int) { close(l.lost) }), l)
	if !errors.Is(how.Lost, hold.ErrLost) || how.Unclean || how.Err != nil {
		t.Errorf("%+v", how)
	}
}

func TestNothingStaysOfARun(t *testing.T) {
	s := newShop(t)
	for _, text := range []string{`sleep 600 & exit 0`, `setsid sleep 600 & exit 0`, `(setsid sh -c 'sleep 600 & sleep 600' &) ; exit 0`} {
		if how := s.run(script(text, `,"kill_after":"1s"`)); how.Code != 0 || how.Signal != "" || how.Unclean || how.Err != nil {
			t.Errorf("%s: %+v", text, how)
		}
	}
}

func TestOutputIsCappedAndText(t *testing.T) {
	s := newShop(t)
	for text, want := range map[string]struct {
		bytes int64
		tail  string
	}{
		`yes 0123456 | head -c 50000000`:                            {50_000_000, strings.Repeat("0123456\n", 128)},
		`head -c 10000000 /dev/zero | tr '\0' x; printf end`:        {10_000_003, strings.Repeat("x", 1021) + "end"},
		`printf 'a\0b\377\376c\033[31m'`:                            {11, "a\x00b\uFFFDc\x1b[31m"},
		`head -c 1023 /dev/zero | tr '\0' x; printf '\342\202\254'`: {1026, strings.Repeat("x", 1021) + "€"},
		`printf '\342\202\254'; head -c 1023 /dev/zero | tr '\0' x`: {1026, strings.Repeat("x", 1023)},
	} {
		how := s.run(script(text, `,"output":{"keep":"1KiB"}`))
		o := how.Output
		if o.Bytes != want.bytes || o.Tail != want.tail || o.Truncated != (o.Bytes > 1024) {
			t.Errorf("%s: %d bytes, truncated %v, tail %.60q (%d)", text, o.Bytes, o.Truncated, o.Tail, len(o.Tail))
		}
		if line := record.Encode(record.Result{Output: o}); !json.Valid([]byte(line)) || !utf8.ValidString(line) {
			t.Errorf("%s: not JSON", text)
		}
	}
}

func TestAllOfItGoesToAFile(t *testing.T) {
	s := newShop(t)
	file := filepath.Join(t.TempDir(), "j.log")
	spec := script(`i=0; while [ $i -lt 40 ]; do echo "line $i of some length, so that it is turned over"; i=$((i+1)); done`,
		`,"output":{"file":"`+file+`","file_size":"1KiB","file_count":3}`)
	for range 2 {
		if how := s.run(spec); how.Err != nil || how.Code != 0 {
			t.Fatalf("%+v", how)
		}
	}
	all, err := filepath.Glob(file + "*")
	if err != nil || len(all) != 4 {
		t.Errorf("files %q, %v", all, err)
	}
	if last, err := os.ReadFile(file); err != nil || !bytes.HasSuffix(last, []byte("line 39 of some length, so that it is turned over\n")) {
		t.Errorf("%q, %v; %v", last, err, all)
	}
	// A link in its place is not followed.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if how := s.run(script(`true`, `,"output":{"file":"`+link+`"}`)); how.Err == nil {
		t.Error("a link was followed")
	}
}

func TestAFileThatIsTurnedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	r, err := openRotated(path, 10, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first\n", "sec\nthird\n", "a line longer than ten\n", "5"} {
		if _, err := io.WriteString(r, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{path: "en\n5", path + ".1": "ger than t", path + ".2": "a line lon", path + ".3": "third\n"} {
		if got, err := os.ReadFile(name); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := os.Stat(path + ".4"); err == nil {
		t.Error("more than were asked for are kept")
	}
	if _, err := io.WriteString(r, "much too much"); err == nil {
		t.Error("a closed file was written to")
	}
}

func TestWithoutAGuardNothingRuns(t *testing.T) {
	s := newShop(t)
	s.w.Pool = shared.New(func() (*guard.Client, error) { return nil, os.ErrNotExist })
	if how := s.run(script(`true`)); !errors.Is(how.Err, hold.ErrNoGuard) {
		t.Errorf("%+v", how)
	}
}

func TestOnlyWarningsArePassedOn(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := slog.New(quiet{slog.NewTextHandler(&b, nil)}).With("a", 1).WithGroup("g")
	log.Info("no")
	log.Warn("yes", "b", 2)
	if got := b.String(); strings.Contains(got, "no") || !strings.Contains(got, "msg=yes a=1 g.b=2") {
		t.Error(got)
	}
}
