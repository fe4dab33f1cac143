package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/proto"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/cron/record"
)

// jam is a desk on which one transaction is under way, and the next ones wait.
type jam struct {
	*desk
	open  func() // lets it be answered
	asked []chan answer
}

type answer struct {
	rev int64
	won bool
	err error
}

// newJam makes one that keeps the next ones back for wait.
func newJam(t *testing.T, wait time.Duration) *jam {
	d := newDesk(t)
	d.joint.wait = wait
	under, release := make(chan struct{}), make(chan struct{})
	d.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: func(c *coordtest.Call) (proto.Message, error) {
		close(under)
		<-release
		return c.Commit(c.Context)
	}})
	j := &jam{desk: d, open: func() { close(release) }}
	j.ask(t.Context(), d.start(1))
	<-under
	d.m.ResetCalls()
	return j
}

// ask asks for a claim, without waiting for the answer.
func (j *jam) ask(ctx context.Context, s Start) {
	got := make(chan answer, 1)
	j.asked = append(j.asked, got)
	go func() {
		rev, won, err := j.Claim(ctx, s)
		got <- answer{rev, won, err}
	}()
}

// waiting waits until so many stand in the queue.
func (j *jam) waiting(n int) {
	for there := -1; there != n; runtime.Gosched() {
		j.joint.mu.Lock()
		there = len(j.joint.queue)
		j.joint.mu.Unlock()
	}
}

// of is the claim of a tick of another job.
func (j *jam) of(name string, change ...func(*Start)) Start {
	j.Helper()
	rev, err := j.m.Put(record.JobKey(name), "{}", 0)
	j.must(err)
	s := j.start(1, change...)
	s.Job, s.SpecRev = name, rev
	return s
}

// answers are those of the claims that waited.
func (j *jam) answers() (all []answer) {
	for i, got := range j.asked {
		if a := <-got; i > 0 {
			all = append(all, a)
		} else if !a.won {
			j.Errorf("the first: %+v", a)
		}
	}
	return all
}

func nested(c *coordtest.Call) bool {
	r, ok := c.Request.(*pb.TxnRequest)
	return ok && len(r.Compare) == 0 && len(r.Success) > 0 && r.Success[0].GetRequestTxn() != nil
}

func TestWhatIsAskedForMeanwhileGoesAsOne(t *testing.T) {
	j := newJam(t, time.Hour)
	edited := j.of("b")
	edited.SpecRev--
	for i, s := range []Start{j.of("a"), edited, j.of("c")} {
		j.ask(t.Context(), s)
		j.waiting(i + 1)
	}
	again := j.start(2) // of the first of them once more: it must see that (J1)
	again.Job, again.SpecRev, again.Cursor = "a", j.m.Get(record.JobKey("a")).ModRevision, nil
	j.ask(t.Context(), again)
	j.waiting(4)
	j.open()
	got := j.answers()
	if !got[0].won || got[1].won || !got[2].won || got[3].won {
		t.Errorf("%+v", got)
	}
	if got[0].rev != got[2].rev || got[0].rev != j.m.Get(record.Key(record.Fires, "a", record.ID{Tick: 1})).CreateRevision {
		t.Errorf("revisions: %+v", got)
	}
	if n := j.m.Calls(coordtest.Txn); n != 2 {
		t.Errorf("%d transactions", n)
	}
}

// One that etcd refuses costs the others nothing.
func TestWhatIsRefusedTogetherIsAskedForApart(t *testing.T) {
	j := newJam(t, time.Hour)
	j.ask(t.Context(), j.of("a"))
	j.ask(t.Context(), j.of("b", func(s *Start) { s.Lease += 1 << 30 }))
	j.ask(t.Context(), j.of("c"))
	j.waiting(3)
	j.open()
	got := j.answers()
	if !got[0].won || !errors.Is(got[1].err, rpctypes.ErrLeaseNotFound) || !got[2].won {
		t.Errorf("%+v", got)
	}
}

func TestWithoutSpaceNothingIsAskedForApart(t *testing.T) {
	j := newJam(t, time.Hour)
	j.ask(t.Context(), j.of("a"))
	j.ask(t.Context(), j.of("b"))
	j.waiting(2)
	j.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: nested, Action: coordtest.Refuse(rpctypes.ErrGRPCNoSpace)})
	j.open()
	for _, a := range j.answers() {
		if !errors.Is(a.err, rpctypes.ErrNoSpace) || errors.Is(a.err, ErrUndecided) {
			t.Error(a)
		}
	}
	if n := j.m.Calls(coordtest.Txn); n != 1 {
		t.Errorf("%d transactions", n)
	}
}

func TestALostReplyLeavesAllUndecided(t *testing.T) {
	j := newJam(t, time.Hour)
	for _, name := range []string{"a", "b"} {
		j.ask(t.Context(), j.of(name))
	}
	j.waiting(2)
	j.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: nested, Action: coordtest.LoseReply(coordtest.Unavailable(""))})
	j.open()
	for _, a := range j.answers() {
		if !errors.Is(a.err, ErrUndecided) || a.won {
			t.Error(a)
		}
	}
	for _, name := range []string{"a", "b"} {
		if _, rev, err := j.Fired(t.Context(), name, record.ID{Tick: 1}); rev == 0 || err != nil {
			t.Error(name, rev, err)
		}
	}
}

// Who waits goes when his time is over: what was not sent is refused, what was is not known.
func TestNobodyWaitsForATransactionBeyondTheirTime(t *testing.T) {
	j := newJam(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	j.ask(t.Context(), j.of("a"))
	j.ask(ctx, j.of("b"))
	j.waiting(2)
	cancel()
	if a := <-j.asked[2]; !errors.Is(a.err, context.Canceled) || errors.Is(a.err, ErrUndecided) {
		t.Error(a)
	}
	j.waiting(1)
	j.joint.take() // as somebody does who sends it, and hears no answer
	sent, end := context.WithCancel(t.Context())
	j.ask(sent, j.of("c"))
	j.waiting(1)
	for _, p := range j.joint.take() {
		p.rev, p.won = 7, true // written down, and not said yet
	}
	end()
	if a := <-j.asked[3]; !errors.Is(a.err, context.Canceled) || !errors.Is(a.err, ErrUndecided) || a.rev != 0 || a.won {
		t.Error(a)
	}
	j.open()
	<-j.asked[0]
}

// One that is not answered keeps the next one back for a moment only.
func TestOneThatIsNotAnsweredKeepsNobodyBackForLong(t *testing.T) {
	j := newJam(t, time.Millisecond)
	if _, won := j.claim(j.of("b")); !won {
		t.Error("not claimed")
	}
	j.open()
	j.answers()
}

func TestWhatGoesTogetherIsBounded(t *testing.T) {
	j := &joint{}
	for i := range jointMost + 1 {
		j.queue = append(j.queue, &part{job: fmt.Sprint(i)})
	}
	if n := len(j.take()); n != jointMost || len(j.queue) != 1 {
		t.Errorf("%d, and %d left", n, len(j.queue))
	}
	result := putResult(&record.Result{RunID: "r/1", Output: record.Output{Tail: strings.Repeat("x", jointSize)}}, 0)
	for i := range 2 {
		p := &part{job: fmt.Sprint("big", i)}
		p.ops = append(p.ops, result)
		j.queue = append(j.queue, p)
	}
	for _, want := range []int{1, 1, 1, 0} {
		if n := len(j.take()); n != want {
			t.Errorf("%d, want %d", n, want)
		}
	}
}
