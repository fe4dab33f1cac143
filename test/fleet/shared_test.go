package fleet

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// TestASharedSessionHearsOfEachOfTenThousandKeys leads ten thousand elections on one session. The deletion of any one
// key is heard of, by that term alone, and the session goes on.
func TestASharedSessionHearsOfEachOfTenThousandKeys(t *testing.T) {
	cli := etcdtest.One(t).Client(t)
	before, routines := heap(), runtime.NumGoroutine()
	pool := coord.NewElectionPool(cli, coord.PoolOptions{SharedSession: true})
	defer func() { must(t, pool.Close()) }()
	all := make([]*coord.Election, size)
	indexes := make([]int, size)
	for i := range indexes {
		indexes[i] = i
	}
	each(indexes, func(i int) {
		e, err := pool.Election(t.Context(), fmt.Sprintf("/many/%d", i))
		if err == nil {
			_, err = e.TryCampaign(t.Context(), "x")
		}
		if err != nil {
			t.Error(err)
			return
		}
		all[i] = e
	})
	if t.Failed() {
		return
	}
	// After the next renewal one each 4 ms begins to be watched. That they cost their memory is the point, and that of each
	// one is heard by its watch.
	time.Sleep(all[1].Session().Bounds().Renew + size*4*time.Millisecond + time.Second)
	t.Logf("%d bytes of heap and %.1f goroutines a key", (heap()-before)/size, float64(runtime.NumGoroutine()-routines)/size)

	worst := time.Duration(0)
	for i := 0; i < size; i += size / 50 {
		term := all[i].Term()
		began := time.Now()
		_, err := cli.Delete(t.Context(), term.Keys().Key)
		must(t, err)
		select {
		case <-term.Lost():
		case <-time.After(limit):
			t.Fatalf("key %d: nothing was heard of its deletion", i)
		}
		worst = max(worst, time.Since(began))
		if err := term.Check(); !errors.Is(err, coord.ErrKeyGone) {
			t.Error(err)
		}
	}
	// A tenth of this is usual; the limit is for a machine that is busy otherwise.
	t.Logf("heard of after %v at most", worst)
	if worst > time.Second {
		t.Errorf("a deletion was heard of after %v, want within a second", worst)
	}
	must(t, all[1].Session().Check())
	if all[1].Term() == nil {
		t.Error("a term ended that nobody touched")
	}
}
