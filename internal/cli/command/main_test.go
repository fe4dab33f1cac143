package command

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// The test binary is its own guard and release program, as conch is.
func TestMain(m *testing.M) {
	if code, played := Role(os.Args); played {
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

// shell runs commands in this process.
type shell struct {
	environ        []string
	signals        chan os.Signal
	lookupSRV      cli.LookupSRV // nil: that of the system
	stdout, stderr text
}

func newShell(environ ...string) *shell {
	return &shell{environ: append([]string{"PATH=/usr/bin:/bin"}, environ...), signals: make(chan os.Signal, 8)}
}

// at is a shell with the shared etcd, and a TTL under which a machine that is busy loses no hold.
func at(t *testing.T) *shell {
	return newShell("CONCH_ENDPOINTS="+etcdtest.Shared(t).Endpoint(), "CONCH_TTL=60s")
}

func (s *shell) conch(args ...string) int { return Main(context.Background(), s.env(args...)) }

func (s *shell) env(args ...string) cli.Env {
	return cli.Env{
		Name: "conch", Args: args, Environ: s.environ,
		Stdin: strings.NewReader(""), Stdout: &s.stdout, Stderr: &s.stderr,
		LookupSRV: s.lookupSRV,
		Signals:   func() (<-chan os.Signal, func()) { return s.signals, func() {} },
	}
}

// start runs a command beside the test; the code comes when it has ended.
func (s *shell) start(args ...string) <-chan int {
	code := make(chan int, 1)
	go func() { code <- s.conch(args...) }()
	return code
}

// messages are the msg of the log lines, in order.
func (s *shell) messages() []string {
	var all []string
	for line := range strings.Lines(s.stderr.String()) {
		_, rest, ok := strings.Cut(line, " msg=")
		if !ok {
			all = append(all, strings.TrimSpace(line))
			continue
		}
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			rest, _, _ = strings.Cut(quoted, `"`)
		} else {
			rest, _, _ = strings.Cut(rest, " ")
		}
		all = append(all, rest)
	}
	return all
}

// settle are the keys beside an office.
func settle(office string) coord.SettleOptions {
	open, last := hold.OfficeKeys(office)
	return coord.SettleOptions{Open: open.String(), Last: last.String()}
}

// lead holds an office as conch does, until the test ends or resigns.
func lead(t *testing.T, office, identity string) *coord.Election {
	t.Helper()
	cli := etcdtest.Shared(t).Client(t)
	el, err := coord.NewElection(t.Context(), cli, coord.ElectionOptions{Key: hold.ElectPrefix(office), TTL: 60, Settle: settle(office)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = el.Close() })
	if err := el.Campaign(t.Context(), identity); err != nil {
		t.Fatal(err)
	}
	return el
}

// queue waits until as many keys as want stand below an office, and gives them in order.
func queue(t *testing.T, cli *clientv3.Client, office string, want int) []coord.Candidate {
	t.Helper()
	for {
		got, err := cli.Get(t.Context(), hold.ElectRange(office), clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		if int(got.Count) == want {
			all, err := coord.ListCandidates(t.Context(), cli, hold.ElectPrefix(office))
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		// Whatever changes, the count is taken again.
		ctx, cancel := context.WithCancel(t.Context())
		<-cli.Watch(ctx, hold.ElectRange(office), clientv3.WithPrefix(), clientv3.WithRev(got.Header.Revision+1))
		cancel()
	}
}

// wait gives the code of a command, or ends the test when there is none for very long.
func wait(t *testing.T, code <-chan int) int {
	t.Helper()
	select {
	case c := <-code:
		return c
	case <-time.After(time.Minute):
		t.Fatal("the command does not end")
		return 0
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func contains(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
