package command

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	engine "github.com/go-coord/coord/internal/cron"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// cronCluster is an etcd of its own, with real engines on it as a test asks for them. What they run is up to the test.
type cronCluster struct {
	*testing.T
	client   *clientv3.Client
	endpoint string
	began    chan string   // gets the run id of each "hang" that begins
	release  chan struct{} // each value, or its being closed, ends one
}

func newCronCluster(t *testing.T) *cronCluster {
	t.Helper()
	server := etcdtest.One(t)
	return &cronCluster{
		T: t, client: server.Client(t), endpoint: server.Endpoint(), began: make(chan string, 100), release: make(chan struct{}),
	}
}

// shell is one whose commands ask this etcd.
func (c *cronCluster) shell() *shell { return newShell("CONCH_ENDPOINTS=" + c.endpoint) }

// says runs a command to its end, which has to be of this code, and gives what it wrote to stdout.
func (c *cronCluster) says(code int, args ...string) string {
	c.Helper()
	s := c.shell()
	if got := s.conch(append([]string{"cron"}, args...)...); got != code {
		c.Errorf("conch cron %s: code %d, want %d; stdout %q, stderr %q", strings.Join(args, " "), got, code, s.stdout.String(), s.stderr.String())
	}
	return s.stdout.String()
}

// refuses runs a command that has to end with this code and one line on stderr, and gives that.
func (c *cronCluster) refuses(code int, args ...string) string {
	c.Helper()
	s := c.shell()
	if got := s.conch(append([]string{"cron"}, args...)...); got != code {
		c.Errorf("conch cron %s: code %d, want %d; stdout %q", strings.Join(args, " "), got, code, s.stdout.String())
	}
	text := s.stderr.String()
	if s.stdout.String() != "" || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "conch: ") {
		c.Errorf("conch cron %s: stdout %q, stderr %q", strings.Join(args, " "), s.stdout.String(), text)
	}
	return strings.TrimPrefix(text, "conch: ")
}

func (c *cronCluster) put(key, value string, o ...clientv3.OpOption) int64 {
	c.Helper()
	got, err := c.client.Put(context.Background(), key, value, o...)
	if err != nil {
		c.Fatal(err)
	}
	return got.Header.Revision
}

func (c *cronCluster) add(name, spec string) { c.Helper(); c.put(record.JobKey(name), spec) }

// start puts a start that runs, as a claim does.
func (c *cronCluster) start(name, id string, o record.Open) {
	c.Helper()
	parsed, err := record.ParseID(id)
	if err != nil {
		c.Fatal(err)
	}
	c.put(record.OpenKey(name, parsed), record.Encode(o))
	c.put(record.Key(record.Runs, name, parsed), record.Encode(o))
}

// result puts a result.
func (c *cronCluster) result(name, id string, r record.Result) {
	c.Helper()
	c.put(record.Results+name+"/"+id, record.Encode(r))
}

func (c *cronCluster) exists(key string) bool {
	c.Helper()
	got, err := c.client.Get(context.Background(), key)
	if err != nil {
		c.Fatal(err)
	}
	return got.Count > 0
}

// node runs an engine until the test ends, or the function is called that it gives. It is registered when this returns.
func (c *cronCluster) node(host string, change ...func(*engine.Options)) (stop func()) {
	c.Helper()
	ready := make(chan struct{})
	o := engine.Options{
		Client: c.client, Host: host, Runner: cronRunner{c}, User: "root", Version: "1.2.3", TTL: time.Minute, DrainTimeout: -1,
		Registered: func() { close(ready) },
	}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx, o) }()
	over := false
	stop = func() {
		if cancel(); !over {
			over = true
			if err := <-ended; err != nil {
				c.Errorf("%s: %v", host, err)
			}
		}
	}
	c.Cleanup(stop)
	select {
	case <-ready:
	case err := <-ended:
		c.Fatalf("%s: %v", host, err)
	}
	return stop
}

// cronRunner runs nothing: "true" and "exit N" are over at once, and "hang" lasts until it is released or asked to end.
type cronRunner struct{ c *cronCluster }

func (r cronRunner) Run(ctx context.Context, s engine.Start, h hold.Hold) engine.Ended {
	s.Started(1)
	how := engine.Ended{Started: time.Now(), Pid: 1, Output: record.Output{Tail: "so it went\n", Bytes: 11}}
	switch s.Spec.Cmd[0] {
	case "exit":
		how.Code, _ = strconv.Atoi(s.Spec.Cmd[1])
	case "hang":
		r.c.began <- s.Job + "/" + s.ID.String()
		select {
		case <-r.c.release:
		case <-ctx.Done():
			how.Signal = "SIGTERM"
		case <-h.Lost():
			how.Lost = h.Cause()
		}
	}
	return how
}

// hung waits until a "hang" has begun, and gives its id.
func (c *cronCluster) hung(name string) string {
	c.Helper()
	select {
	case run := <-c.began:
		id, ok := strings.CutPrefix(run, name+"/")
		if !ok {
			c.Fatalf("%s began, want %s", run, name)
		}
		return id
	case <-time.After(time.Minute):
		c.Fatalf("%s does not begin", name)
		return ""
	}
}

// lines reports lines that do not have what is expected of them: parts with "..." between them, however wide the columns are.
func (c *cronCluster) lines(text string, want ...string) {
	c.Helper()
	got := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(got) != len(want) {
		c.Errorf("%d lines, want %d:\n%s", len(got), len(want), text)
		return
	}
	for i, line := range got {
		line = strings.Join(strings.Fields(line), " ")
		for part := range strings.SplitSeq(strings.Join(strings.Fields(want[i]), " "), "...") {
			at := strings.Index(line, part)
			if at < 0 {
				c.Errorf("line %d is %q, want %q", i+1, got[i], want[i])
				break
			}
			line = line[at+len(part):]
		}
	}
}

// shellSays is what a command says on stdout, whatever its code is.
func (c *cronCluster) shellSays(args ...string) string {
	s := c.shell()
	s.conch(append([]string{"cron"}, args...)...)
	return s.stdout.String()
}
