package etcdtest

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/etcd/embed"
)

func TestClusterOfRealProcesses(t *testing.T) {
	t.Parallel()
	c := Cluster(t, 3)
	all := c.Client(t)
	put(t, all, "k", "1")

	t.Run("each member is a process of its own", func(t *testing.T) {
		pids := map[int]bool{os.Getpid(): true}
		for i := range c.Len() {
			pids[c.Pid(i)] = true
		}
		if len(pids) != c.Len()+1 {
			t.Fatalf("pids %v", pids)
		}
	})

	t.Run("leadership moves to whom it is told", func(t *testing.T) {
		for to := range c.Len() {
			c.MoveLeader(to)
			if got := c.Leader(); got != to {
				t.Fatalf("member %d leads, want %d", got, to)
			}
			if c.Follower() == to {
				t.Fatal("the leader is a follower")
			}
		}
	})

	t.Run("a stopped member answers nothing, the others go on, and it catches up", func(t *testing.T) {
		stopped := c.Leader()
		c.Stop(stopped)
		// Reading its own data takes no other member, so only being frozen explains the silence.
		one := c.Client(t, stopped)
		if _, err := one.Get(briefly(t), "k", clientv3.WithSerializable()); err == nil {
			t.Fatal("a stopped member answers")
		}
		if leader := c.Leader(); leader == stopped {
			t.Fatal("a stopped member leads")
		}
		put(t, c.Client(t, c.Follower()), "k", "2")
		c.Cont(stopped)
		if got := get(t, one, "k"); got != "2" {
			t.Fatalf("k = %q", got)
		}
	})

	t.Run("without a majority nothing is written", func(t *testing.T) {
		alive := c.Leader()
		for i := range c.Len() {
			if i != alive {
				c.Kill(i)
			}
		}
		if _, err := c.Client(t, alive).Put(briefly(t), "k", "3"); err == nil {
			t.Fatal("one of three members wrote")
		}
		for i := range c.Len() {
			if i != alive {
				c.Restart(i)
			}
		}
		c.Ready()
		c.Leader()
		put(t, c.Client(t), "k", "4")
	})

	t.Run("all may be killed at once and keep their endpoints and data", func(t *testing.T) {
		before := strings.Join(c.Endpoints(), " ")
		c.Stop()
		c.Kill()
		c.Restart()
		c.Ready()
		if after := strings.Join(c.Endpoints(), " "); after != before {
			t.Fatalf("endpoints %s, were %s", after, before)
		}
		if got := get(t, c.Client(t), "k"); got != "4" {
			t.Fatalf("k = %q", got)
		}
	})
}

func TestClusterTimingIsTheCallers(t *testing.T) {
	t.Parallel()
	c := Cluster(t, 1, Options{TickMs: 10, ElectionMs: 100})
	// The shortest lease follows from the election time.
	l, err := c.Client(t).Grant(within(t), 1)
	if err != nil || l.TTL != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	l, err = Cluster(t, 1).Client(t).Grant(within(t), 1)
	if err != nil || l.TTL != 2 {
		t.Fatalf("at etcd's default timing: %+v, %v", l, err)
	}
}

// TestMembersDieWithTheTest runs a test process that starts a cluster, freezes a member and is killed.
func TestMembersDieWithTheTest(t *testing.T) {
	t.Parallel()
	if os.Getenv("ETCDTEST_VICTIM") != "" {
		c := Cluster(t, 2, Options{TickMs: 10, ElectionMs: 100})
		c.Stop(1)
		line := "PIDS " + strconv.Itoa(c.Pid(0)) + " " + strconv.Itoa(c.Pid(1)) + "\n"
		if _, err := os.Stdout.WriteString(line); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestMembersDieWithTheTest$")
	cmd.Env = append(os.Environ(), "ETCDTEST_VICTIM=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 256)
	n, err := out.Read(said)
	if err != nil {
		t.Fatal(err)
	}
	pids := strings.Fields(string(said[:n]))
	if len(pids) != 3 || pids[0] != "PIDS" {
		t.Fatalf("the test process says %q", said[:n])
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed

	for _, p := range pids[1:] {
		pid, err := strconv.Atoi(p)
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(limit); !gone(pid); time.Sleep(5 * time.Millisecond) { // not our child: nothing to wait for
			if time.Now().After(deadline) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				t.Fatalf("member %d outlived the test process", pid)
			}
		}
	}
}

// gone reports whether a process has ended, reaped or not.
func gone(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	rest := string(b[strings.LastIndexByte(string(b), ')')+1:])
	return strings.HasPrefix(rest, " Z") || strings.HasPrefix(rest, " X")
}

func TestMemberThatCannotRunSaysWhy(t *testing.T) {
	t.Parallel()
	f := newForker()
	defer f.close()
	dir := tempDir(t)
	_, err := startProcess(f, dir, memberConfig("%", reserve(t)))
	if err == nil || !strings.Contains(err.Error(), "start etcd member") {
		t.Fatalf("got %v", err)
	}
}

func memberConfig(peer, listen string) embed.Config {
	return embed.Config{Dir: "m", Name: "m", Listen: listen, Peer: peer, Unsynced: true}
}
