package coordtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func TestRefuse(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		f := m.Inject(Rule{Method: Txn, Action: Refuse(rpctypes.ErrGRPCNoLeader)})
		if _, err := cli.Txn(t.Context()).Then(clientv3.OpPut("k", "v")).Commit(); err != rpctypes.ErrNoLeader {
			t.Errorf("the refused got %v", err)
		}
		if m.Get("k") != nil || f.Hits() != 1 {
			t.Errorf("committed, or %d hits", f.Hits())
		}
		do(cli.Txn(t.Context()).Then(clientv3.OpPut("k", "v")).Commit())(t)
		if m.Get("k") == nil || m.Calls(Txn) != 2 {
			t.Errorf("lost, or %d calls", m.Calls(Txn))
		}
	})
}

func TestRefusedReadIsRetriedByTheClient(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		m.Inject(Rule{Method: Range, Times: 3, Action: Refuse(Unavailable(""))})
		do(cli.Get(t.Context(), "k"))(t)
		if m.Calls(Range) != 4 {
			t.Errorf("%d calls", m.Calls(Range))
		}
	})
}

func TestLoseRequest(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		m.Inject(Rule{Method: Put, Action: LoseRequest()})
		_, err := cli.Put(within(t, time.Second), "k", "v")
		if !errors.Is(err, context.DeadlineExceeded) || m.Get("k") != nil {
			t.Errorf("the caller got %v; the key: %v", err, m.Get("k"))
		}
	})
}

func TestLoseReply(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		m.Inject(Rule{Method: Txn, Action: LoseReply(nil)})
		_, err := cli.Txn(within(t, time.Second)).Then(clientv3.OpPut("silent", "v")).Commit()
		if !errors.Is(err, context.DeadlineExceeded) || m.Get("silent") == nil {
			t.Errorf("the caller got %v; the key: %v", err, m.Get("silent"))
		}
		m.Inject(Rule{Method: Delete, Action: LoseReply(rpctypes.ErrGRPCTimeout)})
		if _, err := cli.Delete(t.Context(), "silent"); err != rpctypes.ErrTimeout || m.Get("silent") != nil {
			t.Errorf("the caller got %v; the key: %v", err, m.Get("silent"))
		}
		// What is not committed has no reply to lose.
		m.Inject(Rule{Method: Revoke, Action: LoseReply(Unavailable("lost"))})
		if _, err := cli.Revoke(t.Context(), 1); err != rpctypes.ErrLeaseNotFound {
			t.Errorf("the caller got %v", err)
		}
	})
}

func TestLate(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		release := make(chan struct{})
		m.Inject(Rule{Method: Put, Times: 2, Action: Late(release)})
		_, err := cli.Put(within(t, time.Second), "k", "late")
		if !errors.Is(err, context.DeadlineExceeded) || m.Get("k") != nil {
			t.Errorf("the caller got %v; the key: %v", err, m.Get("k"))
		}
		do(cli.Txn(t.Context()).Then(clientv3.OpPut("k", "early")).Commit())(t)
		close(release)
		if err := m.Await(t.Context(), func() bool { return string(m.Get("k").GetValue()) == "late" }); err != nil {
			t.Error(err)
		}
		// One whose caller still waits is answered.
		if r := do(cli.Put(t.Context(), "k", "in time"))(t); r.Header.Revision != m.Rev() {
			t.Errorf("the answer is of %d", r.Header.Revision)
		}
	})
}

func TestLateBy(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		m.Inject(Rule{Method: Put, Action: LateBy(3 * time.Second)})
		start := time.Now()
		if _, err := cli.Put(within(t, time.Second), "k", "v"); err == nil {
			t.Error("it was answered")
		}
		if err := m.Await(t.Context(), func() bool { return m.Get("k") != nil }); err != nil {
			t.Error(err)
		}
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("committed after %v", got)
		}
	})
}

func TestDelay(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		m.Inject(Rule{Method: Put, Times: Forever, Action: Delay(2 * time.Second)})
		start := time.Now()
		do(cli.Put(t.Context(), "k", "v"))(t)
		if got := time.Since(start); got != 2*time.Second {
			t.Errorf("answered after %v", got)
		}
		if _, err := cli.Put(within(t, time.Second), "given up", "v"); err == nil {
			t.Error("it was answered")
		}
		time.Sleep(time.Minute) // in fake time
		if m.Get("given up") != nil {
			t.Error("it was committed")
		}
	})
}

func TestBeforeAndAfterSurroundTheCommit(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		foreign := m.Client(t)
		var before, after []string
		m.Inject(Rule{Method: Txn, Action: Before(func() {
			before = m.Keys("")
			must(foreign.Put(t.Context(), "foreign", "v"))
		})})
		m.Inject(Rule{Method: Txn, Action: After(func() {
			after = m.Keys("")
			m.Delete("foreign")
		})})
		absent := clientv3.Compare(clientv3.CreateRevision("foreign"), "=", 0)
		txn := func() bool {
			return do(cli.Txn(t.Context()).If(absent).Then(clientv3.OpPut("then", "")).Else(clientv3.OpPut("else", "")).Commit())(t).Succeeded
		}
		if txn() || len(before) != 0 {
			t.Errorf("it came before %v", before)
		}
		if txn() || len(after) != 2 || m.Get("foreign") != nil {
			t.Errorf("it came after %v", after)
		}
	})
}

func TestStaleAck(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		lease := do(m.Grant(0, 10))(t)
		stream := renewing(t, cli)
		m.MoveLeader(0)
		m.Inject(Rule{Method: KeepAlive, Action: StaleAck(0)})
		m.Inject(Rule{Method: KeepAlive, Action: StaleAck(7)})
		m.Inject(Rule{Method: Put, Action: StaleAck(0)})
		time.Sleep(6 * time.Second) // in fake time
		for _, term := range []uint64{m.Term() - 1, 7} {
			if r := do(stream.renew(lease))(t); r.TTL != 10 || r.Header.RaftTerm != term {
				t.Errorf("acknowledged by %v", r)
			}
		}
		time.Sleep(4 * time.Second) // in fake time
		if left := m.Leases(); left != nil {
			t.Errorf("left: %v", left)
		}
		if r := do(stream.renew(lease))(t); r.TTL != 0 || r.Header.RaftTerm != m.Term() {
			t.Errorf("acknowledged by %v", r)
		}
		if _, err := cli.Put(t.Context(), "k", "v"); status.Code(err) != codes.Internal {
			t.Errorf("a put was acknowledged by %v", err)
		}
	})
}

func TestFaultsOfStreams(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		lease := do(m.Grant(0, 100))(t)
		m.Inject(Rule{Method: KeepAlive, Skip: 1, Action: Refuse(rpctypes.ErrGRPCPermissionDenied)})
		stream := renewing(t, cli)
		do(stream.renew(lease))(t)
		if _, err := stream.renew(lease); status.Code(err) != codes.PermissionDenied {
			t.Errorf("the renewal got %v", err)
		}
		// The client opens a refused watch again.
		m.Inject(Rule{Method: Watch, Action: Refuse(Unavailable("broken"))})
		created(t, t.Context(), cli, "k")
		if m.Calls(Watch) != 2 {
			t.Errorf("%d watches asked for", m.Calls(Watch))
		}
		// One that is made and not announced tells nothing.
		m.Inject(Rule{Method: Watch, Action: LoseReply(nil)})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		opened := make(chan clientv3.WatchChan, 1)
		go func() { opened <- cli.Watch(clientv3.WithRequireLeader(ctx), "k") }()
		if err := m.Await(t.Context(), func() bool { return m.Watches() == 2 }); err != nil {
			t.Fatal(err)
		}
		do(m.Put("k", "v", 0))(t)
		synctest.Wait()
		if len(opened) != 0 {
			t.Error("it was announced")
		}
		cancel()
		if r, ok := <-<-opened; ok {
			t.Errorf("it told %v", r)
		}
	})
}

func TestRulesAreAskedInOrder(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		var said []string
		say := func(s string) Action { return Before(func() { said = append(said, s) }) }
		first := m.Inject(Rule{Method: Put, Times: 2, Skip: 1, Action: say("first")})
		always := m.Inject(Rule{Times: Forever, Action: say("always")})
		counted := m.Inject(Rule{Method: Put, When: Puts("k"), Times: Forever})
		put := func(key string) { do(cli.Put(t.Context(), key, ""))(t) }
		put("k")
		put("k")
		do(cli.Get(t.Context(), "k"))(t)
		put("k")
		put("k")
		if want := []string{"always", "first", "always", "first", "always"}; !slices.Equal(said, want) {
			t.Errorf("got %q, want %q", said, want)
		}
		always.Remove()
		put("k")
		put("other")
		if first.Hits() != 2 || always.Hits() != 3 || counted.Hits() != 1 {
			t.Errorf("hits: %d, %d, %d", first.Hits(), always.Hits(), counted.Hits())
		}
		m.Heal()
		put("k")
		if counted.Hits() != 1 || m.Calls(Put) != 7 {
			t.Errorf("%d hits, %d calls", counted.Hits(), m.Calls(Put))
		}
		m.ResetCalls()
		if m.Calls(Put) != 0 {
			t.Errorf("%d calls", m.Calls(Put))
		}
	})
}

func TestActionOfOnesOwn(t *testing.T) {
	bubble(t, Options{Members: 2}, func(t *testing.T, m *Medium, cli *clientv3.Client) {
		// A request that is delivered twice.
		m.Inject(Rule{Method: Put, Action: func(c *Call) (proto.Message, error) {
			if c.Method != Put || c.Member != 1 || string(c.Request.(*pb.PutRequest).Key) != "k" {
				t.Errorf("the call is %+v", c)
			}
			must(c.Commit(c.Context))
			return c.Commit(c.Context)
		}})
		do(m.Client(t, 1).Put(t.Context(), "k", "v"))(t)
		if v := m.Get("k").Version; v != 2 {
			t.Errorf("version %d", v)
		}
		m.Inject(Rule{Method: Range, Action: func(*Call) (proto.Message, error) { return nil, nil }})
		if _, err := cli.Get(t.Context(), "k"); status.Code(err) != codes.Internal {
			t.Errorf("the caller got %v", err)
		}
	})
}

func TestPredicatesLookIntoTransactions(t *testing.T) {
	t.Parallel()
	txn := func(cmp []*pb.Compare, then, otherwise []*pb.RequestOp) *Call {
		return &Call{Request: &pb.TxnRequest{Compare: cmp, Success: then, Failure: otherwise}}
	}
	nested := nest(&pb.TxnRequest{Failure: list(put("a/1"))})
	for name, c := range map[string]struct {
		call                           *Call
		touches, writes, puts, deletes bool
	}{
		"a get":                 {call: &Call{Request: &pb.RangeRequest{Key: []byte("a/1")}}, touches: true},
		"a watch":               {call: &Call{Request: &pb.WatchCreateRequest{Key: []byte("a/")}}, touches: true},
		"a put":                 {call: &Call{Request: &pb.PutRequest{Key: []byte("a/1")}}, touches: true, writes: true, puts: true},
		"a delete":              {call: &Call{Request: &pb.DeleteRangeRequest{Key: []byte("a/")}}, touches: true, writes: true, deletes: true},
		"another put":           {call: &Call{Request: &pb.PutRequest{Key: []byte("b")}}},
		"a grant":               {call: &Call{Request: &pb.LeaseGrantRequest{}}},
		"a compare":             {call: txn(list(exists("a/1")), nil, nil), touches: true},
		"a get in an else":      {call: txn(nil, list(put("b")), list(get("a/1"))), touches: true},
		"a put in an else":      {call: txn(nil, nil, list(put("a/1"))), touches: true, writes: true, puts: true},
		"a put deep in a then":  {call: txn(nil, list(nested), nil), touches: true, writes: true, puts: true},
		"a delete in a then":    {call: txn(nil, list(del("a/1")), nil), touches: true, writes: true, deletes: true},
		"a txn of another name": {call: txn(list(exists("b")), list(put("b"), del("c"), get("d")), nil)},
	} {
		if Touches("a/")(c.call) != c.touches || Writes("a/")(c.call) != c.writes || Puts("a/")(c.call) != c.puts || Deletes("a/")(c.call) != c.deletes {
			t.Errorf("%s: %v %v %v %v", name, Touches("a/")(c.call), Writes("a/")(c.call), Puts("a/")(c.call), Deletes("a/")(c.call))
		}
	}
}
