package etcdfence

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/go-coord/coord/coordination/fence"
	"github.com/go-coord/coord/coordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "/reports/fence"

func newGuard(t *testing.T) *Guard {
	t.Helper()
	g, err := New(key)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func put(t *testing.T, m *coordtest.Medium, value string) {
	t.Helper()
	if _, err := m.Put(key, value, 0); err != nil {
		t.Error(err)
	}
}

func TestTokensCompareAsNumbers(t *testing.T) {
	t.Parallel()
	all := []uint64{1, 9, 10, 99, 100, 1207, math.MaxInt64, 1 << 63, math.MaxUint64}
	for i, a := range all {
		if got, err := decode([]byte(encode(a))); got != a || err != nil {
			t.Errorf("%d became %d, %v", a, got, err)
		}
		for j, b := range all {
			if (encode(a) < encode(b)) != (i < j) {
				t.Errorf("%s and %s are in the wrong order", encode(a), encode(b))
			}
			if (encode(a) < encode(b)+"\x00") != (i <= j) {
				t.Errorf("the compare of %d with %d is wrong", a, b)
			}
		}
	}
}

func TestLowerIsRefusedAndEqualAccepted(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	cli, g := m.Client(t), newGuard(t)
	for _, row := range []struct {
		token uint64
		want  error
	}{
		{33, nil}, {33, nil}, {32, &fence.ErrFenced{Key: key, Have: 32, Seen: 33}}, {0, fence.ErrInvalid}, {340, nil},
		{35, &fence.ErrFenced{Key: key, Have: 35, Seen: 340}}, {math.MaxUint64, nil}, {math.MaxUint64, nil},
		{340, &fence.ErrFenced{Key: key, Have: 340, Seen: math.MaxUint64}},
	} {
		before := m.Rev()
		resp, err := g.Do(t.Context(), cli, row.token, clientv3.OpGet("/x"), clientv3.OpPut("/x", "written"))
		if !errors.Is(err, row.want) {
			t.Errorf("%d: %v, want %v", row.token, err, row.want)
		}
		if err != nil && m.Rev() != before {
			t.Errorf("%d: something was written", row.token)
		}
		if err == nil && (resp.Responses[0].GetResponseRange() == nil || resp.Responses[1].GetResponsePut() == nil) {
			t.Errorf("%d: the responses are not those of the operations: %v", row.token, resp)
		}
	}
}

func TestAWriteTakesOneRoundTrip(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	cli, g := m.Client(t), newGuard(t)
	for i, row := range []struct {
		token uint64
		trips int
	}{{33, 2}, {33, 1}, {34, 1}, {34, 1}, {33, 1}} {
		before := m.Calls(coordtest.Txn)
		_, _ = g.Do(t.Context(), cli, row.token, clientv3.OpPut("/x", "written"))
		if got := m.Calls(coordtest.Txn) - before; got != row.trips {
			t.Errorf("write %d, token %d: %d round trips, want %d", i, row.token, got, row.trips)
		}
	}
}

func TestAValueThatIsNoTokenIsRefused(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	cli, g := m.Client(t), newGuard(t)
	for _, value := range []string{"", "5", "34", "00000000000000000000", "99999999999999999999", "000000000000000000340", "\x00", "x", strings.Repeat("9", 1000)} {
		put(t, m, value)
		_, err := g.Do(t.Context(), cli, 34, clientv3.OpPut("/x", "written"))
		if !errors.Is(err, fence.ErrDamaged) || len(err.Error()) > 300 {
			t.Errorf("%.40q: %v", value, err)
		}
	}
	if kv := m.Keys("/x"); len(kv) != 0 {
		t.Errorf("it wrote %v", kv)
	}
}

// Between the two round trips of the first write another one may come.
func TestWhoComesInBetweenIsSeen(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		comes string // value at the key; "": nobody
		want  error
	}{
		"a higher one":  {encode(35), &fence.ErrFenced{Have: 34, Seen: 35}},
		"a lower one":   {encode(33), nil},
		"an equal one":  {encode(34), nil},
		"nobody at all": {"", nil},
	} {
		m := coordtest.Start(t, coordtest.Options{})
		cli, g := m.Client(t), newGuard(t)
		m.Inject(coordtest.Rule{Method: coordtest.Txn, Skip: 1, Action: coordtest.Before(func() {
			if row.comes != "" {
				put(t, m, row.comes)
			}
		})})
		_, err := g.Do(t.Context(), cli, 34, clientv3.OpPut("/x", "written"))
		if !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
		if wrote := len(m.Keys("/x")) == 1; wrote != (row.want == nil) {
			t.Errorf("%s: wrote %v", name, wrote)
		}
	}
}

func TestACallersOwnTransaction(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	cli, g := m.Client(t), newGuard(t)
	write := func(token uint64, mine ...clientv3.Cmp) (bool, error) {
		resp, err := cli.Txn(t.Context()).If(append(g.If(token), mine...)...).
			Then(clientv3.OpPut("/x", "written"), g.Then(token)).Else(g.Else()).Commit()
		if err != nil {
			t.Fatal(err)
		}
		return resp.Succeeded, g.Judge(token, resp)
	}
	if ok, err := write(33); ok || !errors.Is(err, ErrUnseen) {
		t.Errorf("before anything was seen: %v, %v", ok, err)
	}
	if err := g.Begin(t.Context(), cli, 34); err != nil {
		t.Fatal(err)
	}
	if ok, err := write(34); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if ok, err := write(33); ok || !errors.Is(err, &fence.ErrFenced{Key: key, Have: 33, Seen: 34}) {
		t.Errorf("%v, %v", ok, err)
	}
	if ok, err := write(35, clientv3.Compare(clientv3.Version("/y"), ">", 0)); ok || err != nil {
		t.Errorf("another compare failed, the token is good: %v, %v", ok, err)
	}
	if err := g.Begin(t.Context(), cli, 33); !errors.Is(err, &fence.ErrFenced{}) {
		t.Errorf("%v", err)
	}
	if err := g.Judge(34, (*clientv3.TxnResponse)(&pb.TxnResponse{})); !errors.Is(err, ErrUnseen) {
		t.Errorf("a transaction without Else: %v", err)
	}
}

func TestAnErrorOfEtcdIsPassedOn(t *testing.T) {
	t.Parallel()
	m := coordtest.Start(t, coordtest.Options{})
	cli, g := m.Client(t), newGuard(t)
	away := status.Error(codes.Internal, "away")
	m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Refuse(away)})
	if _, err := g.Do(t.Context(), cli, 34); err == nil || errors.Is(err, &fence.ErrFenced{}) || !strings.Contains(err.Error(), "away") {
		t.Errorf("%v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Begin(over, cli, 34); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := New(""); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("%v", err)
	}
}
