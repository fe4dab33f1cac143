package command

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// occupy holds a slot as conch does, until the test ends.
func occupy(t *testing.T, name string, max int, identity string) *coord.Term {
	t.Helper()
	open, last := hold.SemaRecords(name)
	m, err := coord.NewSemaphore(etcdtest.Shared(t).Client(t), coord.SemaphoreOptions{
		Key: hold.SemaPrefix(name), Slots: hold.SlotPrefix(name), Max: max, TTL: time.Minute,
		Settle: coord.SettleOptions{Open: open, Last: last},
	})
	if err != nil {
		t.Fatal(err)
	}
	term, err := m.Acquire(t.Context(), identity)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Release(t.Context(), term) })
	return term
}

// below are the keys below a prefix, once there are as many as want.
func below(t *testing.T, prefix string, want int) (keys []string) {
	t.Helper()
	cli := etcdtest.Shared(t).Client(t)
	awaits(t, func() bool {
		got, err := cli.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		keys = nil
		for _, kv := range got.Kvs {
			keys = append(keys, string(kv.Key))
		}
		return len(keys) == want
	})
	return keys
}

func TestACommandRunsWhileItsSlotIsHeld(t *testing.T) {
	t.Parallel()
	s, name := at(t), etcdtest.Office(t)
	occupy(t, name, 2, "another")
	out := filepath.Join(t.TempDir(), "out")
	code := s.conch("sema", name, "--max", "2", "--", "sh", "-c", `echo "$CONCH_NAME $CONCH_SLOT $CONCH_REV $CONCH_LEASE" >"$1"; exit 3`, "sh", out)
	if code != 3 {
		t.Errorf("code %d, want the child's 3; %s", code, s.stderr.String())
	}
	equal(t, s.messages(), []string{"acquired", "child-start", "child-exit", "released"})
	words := strings.Fields(content(t, out))
	if len(words) != 4 || words[0] != name || words[1] != "1" {
		t.Fatalf("the child saw %q", words)
	}
	contains(t, s.stderr.String(), "slot=1", "rev="+words[2], "lease="+words[3])
	below(t, hold.SemaRange(name), 1)
	below(t, hold.SlotPrefix(name)+"/", 1)
	open, last := hold.SemaRecords(name)
	below(t, open+"/", 1)
	equal(t, below(t, last+"/", 1), []string{last + "/2/1"})
}

func TestAFullSemaphoreIsNotWaitedForLongerThanAsked(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	for range 5 {
		occupy(t, name, 5, hold.NewHolder("h\x1b[2J", 7, time.Time{}, []string{"job"}).Encode())
	}
	for _, row := range []struct{ flag, value, says string }{
		{"--nonblock", "", name + " is taken: slot 0 by "},
		{"--wait", "0", name + " is taken: slot 0 by "},
		{"--wait", "200ms", name + " is not ours after 200ms: slot 0 by "},
	} {
		s := at(t)
		args := []string{"sema", name, "--max", "5", row.flag, row.value, "--quiet", "--", "true"}
		if row.value == "" {
			args = append(args[:5], args[6:]...)
		}
		if code := s.conch(args...); code != hold.CodeNotAcquired {
			t.Errorf("code %d; %s", code, s.stderr.String())
		}
		contains(t, s.stderr.String(), row.says, `h\x1b[2J pid 7 (job), slot 1 by`, " and 2 more\n")
	}
	below(t, hold.SemaRange(name), 5)
}

func TestASemaphoreInUseWithAnotherMaxIsRefused(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	for range 3 {
		occupy(t, name, 3, hold.NewHolder("h", 7, time.Time{}, []string{"job"}).Encode())
	}
	s := at(t)
	if code := s.conch("sema", name, "--max", "4", "--", "true"); code != hold.CodeNotAcquired {
		t.Errorf("code %d", code)
	}
	contains(t, s.stderr.String(), "conch: not acquired: "+name+" is in use with max 3, not with 4: h pid 7 (job), ", "(--ignore-other-max ignores them)\n")
	below(t, hold.SemaRange(name), 3)

	s = at(t)
	if code := s.conch("sema", name, "--max", "4", "--ignore-other-max", "--", "true"); code != 0 {
		t.Errorf("code %d; %s", code, s.stderr.String())
	}
}

func TestRefusalsNameWhoIsThere(t *testing.T) {
	t.Parallel()
	m := &semaphore{name: "x", max: 4}
	seat := func(identity string, slot int) coord.Holder {
		return coord.Holder{Candidate: coord.Candidate{Identity: identity}, Slot: slot}
	}
	for _, row := range []struct {
		other   int
		holders []coord.Holder
		says    string
	}{
		{3, []coord.Holder{seat("\x1b[2J", -1)}, `x is in use with max 3, not with 4: \x1b[2J`},
		{3, []coord.Holder{seat("", 2)}, `max 3, not with 4: slot 2 by a holder that left its place in the queue`},
		{0, []coord.Holder{seat("a", -1)}, `a max that is no number, not with 4: a`},
		{3, []coord.Holder{seat("a", 0), seat("b", 1), seat("c", 2), seat("d", -1)}, `slot 0 by a, slot 1 by b, slot 2 by c and 1 more (`},
		{3, []coord.Holder{seat(hold.Holder{Host: "h", PID: 7, Fenced: true}.Encode(), 1)}, `slot 1 left by h pid 7, whose on-lose failed: nobody is at work (`},
	} {
		err := m.refusal(&coord.OtherMaxError{Max: 4, Other: row.other, Holders: row.holders})
		contains(t, cli.OneLine(err), row.says)
		if hold.ExitCode(err) != hold.CodeNotAcquired {
			t.Error(err)
		}
	}
}

// Where nobody holds a slot it is whoever comes first that keeps others from it.
func TestWhoComesFirstIsNamedWhereNobodyHolds(t *testing.T) {
	t.Parallel()
	s, name := at(t), etcdtest.Office(t)
	client := etcdtest.Shared(t).Client(t)
	for lease := range int64(2) {
		key := hold.SemaKey(name, 2, lease+1).String()
		if _, err := client.Put(t.Context(), key, hold.NewHolder("h", int(lease)+7, time.Time{}, nil).Encode()); err != nil {
			t.Fatal(err)
		}
	}
	if code := s.conch("sema", name, "--max", "2", "--nonblock", "--", "true"); code != hold.CodeNotAcquired {
		t.Errorf("code %d", code)
	}
	contains(t, s.stderr.String(), "conch: not acquired: "+name+" is taken: next is h pid 7\n")
}

// Of one host's contenders one holds a slot, or waits for it, at a time. Red when they all go for a slot.
func TestSlotsAreSpreadOverHosts(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	first, dir := at(t), t.TempDir()
	code := first.start("sema", name, "--max", "3", "--spread", "--", "sleep", "600")
	below(t, hold.SlotPrefix(name)+"/", 1)
	below(t, hold.SpreadPrefix(name, hostname())+"/", 1)

	s := at(t)
	if c := s.conch("sema", name, "--max", "3", "--spread", "--nonblock", "--", "true"); c != hold.CodeNotAcquired {
		t.Errorf("code %d", c)
	}
	contains(t, s.stderr.String(), name+" is taken: on this host ", "(sleep 600) goes first (--spread)\n")
	second := at(t)
	ran := filepath.Join(dir, "ran")
	then := second.start("sema", name, "--max", "3", "--spread", "--", "touch", ran)
	below(t, hold.SpreadPrefix(name, hostname())+"/", 2)
	below(t, hold.SemaRange(name), 1)
	awaits(t, func() bool {
		return strings.Contains(second.stderr.String(), "msg=\"waiting for this host's other contenders\"")
	})

	// Who does not ask for it is not counted.
	if c := at(t).conch("sema", name, "--max", "3", "--nonblock", "--", "true"); c != 0 {
		t.Errorf("code %d", c)
	}
	if exists(ran) {
		t.Error("the second runs beside the first")
	}
	first.signals <- syscall.SIGTERM
	if c := wait(t, code); c != 128+15 {
		t.Errorf("code %d", c)
	}
	if c := wait(t, then); c != 0 || !exists(ran) {
		t.Errorf("code %d; %s", c, second.stderr.String())
	}
	below(t, hold.SpreadPrefix(name, hostname())+"/", 0)
	below(t, hold.SemaRange(name), 0)
}

func TestAWaiterForASlotThatLostItsPlaceQueuesAgain(t *testing.T) {
	t.Parallel()
	name := etcdtest.Office(t)
	term := occupy(t, name, 1, "another")
	s := at(t)
	code := s.start("sema", name, "--max", "1", "--settle", "off", "--", "true")
	keys := below(t, hold.SemaRange(name), 2)
	own := keys[0]
	if own == term.Keys().Key {
		own = keys[1]
	}
	awaits(t, func() bool { return strings.Contains(s.stderr.String(), "position=1 max=1") })
	if _, err := etcdtest.Shared(t).Client(t).Delete(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	awaits(t, func() bool { return strings.Contains(s.stderr.String(), "queueing again") })
	below(t, hold.SemaRange(name), 2)
	if err := term.Keys().Release(t.Context(), etcdtest.Shared(t).Client(t), coord.EndReleased); err != nil {
		t.Fatal(err)
	}
	if c := wait(t, code); c != 0 {
		t.Errorf("code %d; %s", c, s.stderr.String())
	}
	contains(t, s.stderr.String(), "settling is off")
}
