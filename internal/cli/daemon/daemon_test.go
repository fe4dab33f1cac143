package daemon

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cli/command"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// The test binary is the guard and the release program, as conchd is. Tests with a guard do not run side by side: a sweep ends
// all children of a process.
func TestMain(m *testing.M) {
	if code, played := command.Role(os.Args); played {
		os.Exit(code)
	}
	etcdtest.Main(m)
}

// text is a buffer for several writers.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *text) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *text) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// house is one conchd in this process.
type house struct {
	signals        chan os.Signal
	stdout, stderr text
	ready          chan struct{} // closed when it says so
	said           chan string   // to the service manager
}

func newHouse() *house {
	return &house{signals: make(chan os.Signal, 4), ready: make(chan struct{}), said: make(chan string, 100)}
}

func (h *house) env(args []string, environ ...string) cli.Env {
	var once sync.Once
	return cli.Env{
		Name: "conchd", Args: args, Environ: append([]string{"PATH=/usr/bin:/bin"}, environ...),
		Stdin: strings.NewReader(""), Stdout: &h.stdout, Stderr: &h.stderr,
		Signals: func() (<-chan os.Signal, func()) { return h.signals, func() {} },
		Notify: func(state string) {
			if strings.HasPrefix(state, "READY=1") {
				once.Do(func() { close(h.ready) })
			}
			select {
			case h.said <- state:
			default:
			}
		},
		Watchdog: time.Second,
	}
}

// start runs it beside the test; the code comes when it has ended.
func (h *house) start(args []string, environ ...string) <-chan int {
	code := make(chan int, 1)
	go func() { code <- Main(context.Background(), h.env(args, environ...)) }()
	return code
}

func put(t *testing.T, client *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := client.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// result waits for the result of a job.
func result(t *testing.T, client *clientv3.Client, job string, n int) record.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for w := range client.Watch(ctx, record.Range(record.Results, job), clientv3.WithPrefix(), clientv3.WithRev(1)) {
		for _, ev := range w.Events {
			if n--; n == 0 {
				r, _ := record.Decode[record.Result](ev.Kv.Value)
				return r
			}
		}
	}
	t.Fatal("no result")
	return record.Result{}
}

func TestADaemonFromItsStartToItsEnd(t *testing.T) {
	server := etcdtest.One(t)
	client := server.Client(t)
	for _, mode := range []string{"auto", "off"} {
		put(t, client, record.JobKey("j"+mode), `{"schedule":"@every 1s","script":"echo $CONCH_NAME"}`)
		h := newHouse()
		code := h.start([]string{"--host", "a", "--guard", mode, "--label", "disk=ssd", "--allow-user", "nobody,daemon"},
			"CONCH_ENDPOINTS="+server.Endpoint(), "CONCH_MAX_RUNNING=7", "CONCH_DRAIN_TIMEOUT=0s")
		<-h.ready
		if r := result(t, client, "j"+mode, 1); r.Status != record.Success || r.Output.Tail != "j"+mode+"\n" || r.Host != "a" {
			t.Errorf("%+v", r)
		}
		h.signals <- syscall.SIGWINCH // means nothing
		h.signals <- syscall.SIGTERM
		if c := <-code; c != 0 || h.stdout.String() != "" {
			t.Errorf("code %d, stdout %q, stderr %s", c, &h.stdout, &h.stderr)
		}
		if !strings.Contains(h.stderr.String(), "msg=registered") {
			t.Errorf("log: %s", &h.stderr)
		}
		got, err := client.Get(t.Context(), record.Nodes, clientv3.WithPrefix())
		if err != nil || len(got.Kvs) != 0 {
			t.Errorf("still registered: %v, %v", got, err)
		}
		beats := 0
		for len(h.said) > 0 {
			if strings.Contains(<-h.said, "WATCHDOG=1") {
				beats++
			}
		}
		if beats == 0 {
			t.Error("no beat")
		}
	}
}

func TestASecondSignalEndsWhatRuns(t *testing.T) {
	server := etcdtest.One(t)
	client := server.Client(t)
	mark := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(mark, 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, client, record.JobKey("j"), `{"schedule":"@every 1s","script":"echo up >`+mark+`; sleep 600"}`)
	h := newHouse()
	code := h.start([]string{"--host", "a", "--endpoints", server.Endpoint(), "--drain-timeout", "10m"})
	if _, err := os.ReadFile(mark); err != nil { // it runs
		t.Fatal(err)
	}
	h.signals <- syscall.SIGTERM
	h.signals <- syscall.SIGTERM
	h.signals <- syscall.SIGTERM // and one more, which changes nothing
	if c := <-code; c != 0 {
		t.Errorf("code %d, %s", c, &h.stderr)
	}
	if r := result(t, client, "j", 1); r.Status != record.Killed || r.Reason != record.ReasonShutdown {
		t.Errorf("%+v", r)
	}
}

func TestOneDaemonAName(t *testing.T) {
	server := etcdtest.One(t)
	first := newHouse()
	code := first.start([]string{"--host", "a", "--endpoints", server.Endpoint()})
	<-first.ready
	second := newHouse()
	if c := Main(t.Context(), second.env([]string{"--host", "a", "--endpoints", server.Endpoint(), "--log-format", "json"})); c != 75 {
		t.Errorf("code %d", c)
	}
	lines := strings.Split(strings.TrimSpace(second.stderr.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "--host") || !strings.HasPrefix(last, "{") {
		t.Errorf("%q", lines)
	}
	first.signals <- syscall.SIGINT
	if c := <-code; c != 0 {
		t.Errorf("code %d", c)
	}
}

func TestADaemonThatOnlyReads(t *testing.T) {
	server := etcdtest.One(t)
	client := server.Client(t)
	put(t, client, record.JobKey("j"), `{"schedule":"@every 1s","cmd":["true"]}`)
	h := newHouse()
	code := h.start([]string{"--read-only", "--endpoints", server.Endpoint(), "--host", "a"})
	<-h.ready
	h.signals <- syscall.SIGTERM
	if c := <-code; c != 0 {
		t.Errorf("code %d, %s", c, &h.stderr)
	}
	got, err := client.Get(t.Context(), record.Root, clientv3.WithPrefix())
	if err != nil || len(got.Kvs) != 1 {
		t.Errorf("written: %v, %v", got, err)
	}
}

func TestWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	nobody := etcdtest.Untouched(t)
	for line, want := range map[string]string{
		"--allow-user=":             `--allow-user "": want the name of a user`,
		"--host a/b":                `--host: name "a/b" may have only letters`,
		"--label x":                 `--label "x": want KEY=VALUE`,
		"--label a=b,c":             "--label: ",
		"--max-running 0":           `--max-running "0": want a whole number from 1 to 100000`,
		"--max-running many":        "--max-running",
		"--drain-timeout -1s":       `--drain-timeout "-1s": want a duration from 0s`,
		"--max-skew 10ms":           `--max-skew "10ms": want a duration of at least 1s`,
		"--allow-user a:b":          `--allow-user "a:b": want the name of a user`,
		"--ttl 2s --kill-margin 3s": "--ttl 2s, --kill-margin 3s",
		"--guard maybe":             "--guard",
		"--hots a":                  `unknown flag "--hots"; --host is meant?`,
		"job":                       `conchd takes no arguments, got "job"`,
	} {
		h := newHouse()
		if c := Main(t.Context(), h.env(strings.Fields(line), "CONCH_ENDPOINTS="+nobody)); c != 64 {
			t.Errorf("%s: code %d", line, c)
		}
		if out := h.stderr.String(); strings.Count(out, "\n") != 1 || !strings.Contains(out, strings.TrimSuffix(want, "; --host is meant?")) {
			t.Errorf("%s: %s", line, out)
		}
	}
}

func TestAnEtcdThatIsNotThere(t *testing.T) {
	t.Parallel()
	h := newHouse()
	if c := Main(t.Context(), h.env([]string{"--host", "a", "--endpoints", etcdtest.Refused(t), "--dial-timeout", "200ms"})); c != 69 {
		t.Errorf("code %d, %s", c, &h.stderr)
	}
	h = newHouse()
	if c := Main(t.Context(), h.env([]string{"--version"})); c != 0 || !strings.HasPrefix(h.stdout.String(), "conchd ") {
		t.Errorf("code %d, %q", c, &h.stdout)
	}
	h = newHouse()
	if c := Main(t.Context(), h.env([]string{"--help"})); c != 0 || !strings.Contains(h.stdout.String(), "--drain-timeout") || !strings.Contains(h.stdout.String(), "Exit codes") {
		t.Errorf("code %d, %q", c, &h.stdout)
	}
}

// The agenda is looked at for each event, and each word to the service manager is a socket.
func TestTheServiceManagerHearsNoMoreBeatsThanItAsksFor(t *testing.T) {
	if beats(nil) != nil {
		t.Error("nobody listens, and somebody is told")
	}
	synctest.Test(t, func(t *testing.T) {
		var heard []time.Duration
		began := time.Now()
		manager := cli.NewNotifier(cli.Env{Watchdog: 2 * time.Second, Notify: func(state string) {
			if state == "WATCHDOG=1" {
				heard = append(heard, time.Since(began))
			}
		}})
		beat := beats(manager)
		for range 1000 {
			beat()
			time.Sleep(10 * time.Millisecond) // fake time
		}
		manager.Close()
		want := 10 * time.Second / (500 * time.Millisecond)
		if len(heard) != int(want) {
			t.Errorf("%d beats in 10 s: %v, want %d", len(heard), heard, want)
		}
	})
}
