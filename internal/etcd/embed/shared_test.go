package embed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// shared gives a Shared in a directory of its own whose member is this test binary, gone after the test.
func shared(t *testing.T, grace time.Duration) Shared {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Sockets need short paths; t.TempDir spells out the test's name.
	dir, err := os.MkdirTemp("", "dev")
	if err != nil {
		t.Fatal(err)
	}
	s := Shared{Dir: filepath.Join(dir, "conch-dev"), Self: self, Grace: grace}
	t.Cleanup(func() {
		if r, ok := state(s.Dir).read(); ok && r.PID != os.Getpid() {
			_ = syscall.Kill(r.PID, syscall.SIGCONT)
			_ = syscall.Kill(r.PID, syscall.SIGTERM)
		}
		awaitEnd(t, s)
		os.RemoveAll(dir)
	})
	return s
}

// awaitEnd waits until no member has the lock.
func awaitEnd(t *testing.T, s Shared) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		f, err := state(s.Dir).lock()
		if err == nil {
			f.Close()
			return
		}
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the member did not end: %v", err)
		}
		time.Sleep(2 * time.Millisecond) // flock tells nobody when it becomes free, but by blocking
	}
}

func ensure(t *testing.T, s Shared) (string, bool) {
	t.Helper()
	endpoint, started, err := s.Ensure(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return endpoint, started
}

// connect gives a client that has been served by the member. With a short grace the member may end between
// the look and the first call: then there is another one to be had, and on a slow machine it has to wait longer.
func connect(t *testing.T, s *Shared) *clientv3.Client {
	t.Helper()
	for ; s.Grace < time.Minute; s.Grace *= 2 {
		endpoint, _ := ensure(t, *s)
		c := client(t, endpoint)
		ctx, cancel := context.WithTimeout(t.Context(), 10*s.Grace)
		_, err := c.Put(ctx, "k", "v")
		cancel()
		if err == nil {
			return c
		}
		c.Close()
		awaitEnd(t, *s)
	}
	t.Fatal("the member ends too fast to be used")
	return nil
}

func pid(t *testing.T, s Shared) int {
	t.Helper()
	r, ok := state(s.Dir).read()
	if !ok {
		t.Fatal("no member recorded")
	}
	return r.PID
}

func TestRacingShellsShareOneMember(t *testing.T) {
	t.Parallel()
	s := shared(t, time.Minute)
	var (
		all       sync.WaitGroup
		mu        sync.Mutex
		starts    int
		endpoints = map[string]int{}
	)
	for range 6 {
		all.Go(func() {
			endpoint, started, err := s.Ensure(within(t))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			endpoints[endpoint]++
			if started {
				starts++
			}
		})
	}
	all.Wait()
	if starts != 1 || len(endpoints) != 1 {
		t.Fatalf("%d starts, endpoints %v", starts, endpoints)
	}
}

func TestMemberProcessIsNobodysChild(t *testing.T) {
	t.Parallel()
	s := shared(t, time.Minute)
	ensure(t, s)
	id := pid(t, s)
	b, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	// After the name in parentheses: state, parent, group, session.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if fields[1] == strconv.Itoa(os.Getpid()) {
		t.Error("the member is our child")
	}
	ours, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	if fields[3] == strconv.Itoa(int(ours)) {
		t.Error("the member is in our session")
	}
	// It took nothing along but its own.
	env, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range strings.Split(strings.TrimRight(string(env), "\x00"), "\x00") {
		if name, _, _ := strings.Cut(v, "="); name != "" && !strings.Contains(" HOME PATH TMPDIR GOCOVERDIR ", " "+name+" ") {
			t.Errorf("the member's environment has %s", name)
		}
	}
}

func TestMemberEndsAfterItsLastClientAndKeepsTheData(t *testing.T) {
	t.Parallel()
	s := shared(t, 200*time.Millisecond)
	// A client that asks for nothing any more is a client while it is connected.
	c := connect(t, &s)
	<-time.After(3 * s.Grace) // the member's timer is what is tested
	if _, started := ensure(t, s); started {
		t.Fatal("the member ended under a client")
	}
	c.Close()
	awaitEnd(t, s)
	for _, name := range []string{"member.json", "etcd.sock"} {
		if _, err := os.Lstat(filepath.Join(s.Dir, name)); err == nil {
			t.Errorf("the member left %s", name)
		}
	}

	s.Grace = time.Minute
	endpoint, started := ensure(t, s)
	if !started {
		t.Fatal("found a member that had ended")
	}
	if got := get(t, endpoint, "k"); got != "v" {
		t.Fatalf("k = %q", got)
	}
}

func TestStartsAndEndsMayCrossAtWill(t *testing.T) {
	t.Parallel()
	// With next to no grace the member is ending whenever somebody looks.
	s := shared(t, time.Millisecond)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range 4 {
				if _, _, err := s.Ensure(within(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestKilledMemberIsReplacedWithItsData(t *testing.T) {
	t.Parallel()
	s := shared(t, time.Minute)
	endpoint, _ := ensure(t, s)
	put(t, endpoint, "k", "v")
	if err := syscall.Kill(pid(t, s), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, s)
	if _, err := os.Lstat(filepath.Join(s.Dir, "member.json")); err != nil {
		t.Fatal("the killed member left no record: this test is of no use")
	}
	endpoint, started := ensure(t, s)
	if !started {
		t.Fatal("found a dead member")
	}
	if got := get(t, endpoint, "k"); got != "v" {
		t.Fatalf("k = %q", got)
	}
}

func TestFrozenMemberIsReported(t *testing.T) {
	t.Parallel()
	s := shared(t, time.Minute)
	ensure(t, s)
	if err := syscall.Kill(pid(t, s), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := s.Ensure(ctx); !errors.Is(err, ErrSilent) {
		t.Fatalf("got %v, want ErrSilent", err)
	}
	if err := syscall.Kill(pid(t, s), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, started := ensure(t, s); started {
		t.Fatal("a second member was started")
	}
}

func TestBrokenStoreIsMovedAsideAtTheThirdStart(t *testing.T) {
	t.Parallel()
	s := shared(t, time.Minute)
	db := filepath.Join(s.Dir, "data", "member", "snap", "db")
	if err := os.MkdirAll(filepath.Dir(db), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(db, []byte(strings.Repeat("not a database", 4096)), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if _, _, err := s.Ensure(within(t)); err == nil || !strings.Contains(err.Error(), filepath.Join(s.Dir, "log")) {
			t.Fatalf("start %d on a broken store: %v", i+1, err)
		}
	}
	endpoint, started := ensure(t, s)
	if !started {
		t.Fatal("not started")
	}
	put(t, endpoint, "k", "v")
	if _, err := os.Stat(filepath.Join(s.Dir, "data.broken", "member", "snap", "db")); err != nil {
		t.Fatal(err)
	}
}

func TestNewerStateIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := shared(t, time.Minute)
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "version"), []byte("99.0.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Ensure(within(t)); err == nil || !strings.Contains(err.Error(), ErrNewerState.Error()) {
		t.Fatalf("got %v, want what ErrNewerState says", err)
	}
}

func TestDeepDirectoryIsServedAtALoopbackPort(t *testing.T) {
	t.Parallel()
	s := shared(t, time.Minute)
	s.Dir = filepath.Join(s.Dir, strings.Repeat("deep", 30))
	t.Cleanup(func() {
		_ = syscall.Kill(pid(t, s), syscall.SIGTERM)
		awaitEnd(t, s)
	})
	endpoint, _ := ensure(t, s)
	if !strings.HasPrefix(endpoint, "127.0.0.1:") {
		t.Fatalf("endpoint %s", endpoint)
	}
	put(t, endpoint, "k", "v")
}

func TestProgramThatCannotBeTheMember(t *testing.T) {
	t.Parallel()
	for _, self := range []string{"/nonexistent", "/bin/false", "/bin/true"} {
		s := shared(t, time.Minute)
		s.Self = self
		if _, _, err := s.Ensure(within(t)); err == nil || errors.Is(err, ErrSilent) {
			t.Errorf("%s: %v", self, err)
		}
	}
}

func TestWatchKeepsTheMember(t *testing.T) {
	t.Parallel()
	// A watch of a client that says nothing keeps the member, as a queued wrapper does.
	s := shared(t, 100*time.Millisecond)
	c := connect(t, &s)
	<-c.Watch(within(t), "k", clientv3.WithCreatedNotify())
	<-time.After(5 * s.Grace) // the member's timer is what is tested
	if _, started := ensure(t, s); started {
		t.Fatal("the member ended under a watch")
	}
}

func TestRole(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		ok   bool
		code int
	}{
		{[]string{"conch-dev"}, false, 0},
		{[]string{"conch-dev", "elect", roleArg}, false, 0},
		{[]string{"conch-dev", roleArg}, true, 1},
		{[]string{"conch-dev", roleArg, roleMember, "dir", "soon"}, true, 1},
		{[]string{"conch-dev", roleArg, "emperor", "dir", "1s"}, true, 1},
	} {
		if code, ok := Role(tt.args); ok != tt.ok || code != tt.code {
			t.Errorf("%q: %d, %v", tt.args, code, ok)
		}
	}
}
