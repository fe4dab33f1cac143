package coord

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
)

func TestASnapshotIsWhoIsUp(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		put := func(m HostMetadata, encode func(HostMetadata) string) int64 {
			lease, err := w.m.Grant(clientv3.LeaseID(77+len(m.HostUUID)), 60)
			w.must(err)
			rev, err := w.m.Put(HostsPrefix+m.HostUUID, encode(m), lease)
			w.must(err)
			return rev
		}
		began := time.Now()
		rev := put(HostMetadata{HostUUID: "bb", StartedAt: began.Add(-time.Hour).UnixNano(), Labels: map[string]string{"zone": "a"}}, encodeHost)
		put(HostMetadata{HostUUID: "a", StartedAt: began.Add(time.Hour).UnixNano()}, encodeStopping)
		hw := w.watch(WatcherOptions{})
		time.Sleep(time.Minute - time.Second)
		v := hw.Snapshot()
		if len(v.Hosts) != 2 || v.Stale || v.Revision != w.m.Rev() || time.Since(v.AsOf) > 5*time.Second {
			w.Fatalf("%+v", v)
		}
		a, b := v.Hosts[0], v.Hosts[1]
		if a.Metadata.HostUUID != "a" || !a.Stopping || a.Age != 59*time.Second || a.Lease != 78 {
			w.Errorf("%+v", a)
		}
		if b.Metadata.HostUUID != "bb" || b.Stopping || b.Age != time.Hour+59*time.Second || b.Incarnation != rev || b.Lease != 79 {
			w.Errorf("%+v", b)
		}
		// The labels are the caller's own.
		b.Metadata.Labels["zone"] = "changed"
		if got := hw.Snapshot().Hosts[1].Metadata.Labels["zone"]; got != "a" {
			w.Error(got)
		}
		ev := <-hw.Events()
		for ev.HostUUID != "bb" {
			ev = <-hw.Events()
		}
		ev.Metadata.Labels["zone"] = "changed"
		if got := hw.Snapshot().Hosts[1].Metadata.Labels["zone"]; got != "a" {
			w.Error(got)
		}
	})
}

func TestListHostsReadsOnce(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		cli := w.m.Client(w)
		w.host("a", "1")
		w.host("b", "2")
		w.put("", "other/c", 0)
		v, err := ListHosts(w.Context(), cli, "")
		if err != nil || len(v.Hosts) != 2 || v.Hosts[1].Metadata.Version != "2" || v.Revision != w.m.Rev() || v.AsOf.IsZero() {
			w.Errorf("%+v %v", v, err)
		}
		if v, err = ListHosts(w.Context(), cli, "/coord/hosts/other"); err != nil || len(v.Hosts) != 1 {
			w.Errorf("%+v %v", v, err)
		}
		w.m.Inject(coordtest.Rule{Action: coordtest.Refuse(rpctypes.ErrGRPCPermissionDenied)})
		if _, err := ListHosts(w.Context(), cli, ""); !errors.Is(err, rpctypes.ErrPermissionDenied) {
			w.Error(err)
		}
		synctest.Wait()
		if w.m.Watches() != 0 {
			w.Error("a list left a watch")
		}
	})
}

func TestSelect(t *testing.T) {
	t.Parallel()
	v := HostView{Revision: 7, Hosts: []Host{
		{Metadata: HostMetadata{HostUUID: "a", Labels: map[string]string{"zone": "a", "role": "db"}}},
		{Metadata: HostMetadata{HostUUID: "b", Labels: map[string]string{"zone": "b", "role": "db"}}},
		{Metadata: HostMetadata{HostUUID: "c", Labels: map[string]string{"zone": "a", "empty": ""}}},
		{Metadata: HostMetadata{HostUUID: "d"}},
	}}
	for selector, want := range map[string]string{
		"": "[a b c d]", "zone=a": "[a c]", "role=db": "[a b]", "zone=a,role=db": "[a]", "zone=a,zone=a": "[a c]",
		"zone=c": "[]", "empty=": "[c]", "zone=": "[]", "x/y=z": "[]",
	} {
		got, err := v.Select(selector)
		names := []string{}
		for _, h := range got.Hosts {
			names = append(names, h.Metadata.HostUUID)
		}
		if err != nil || fmt.Sprint(names) != want || got.Revision != 7 {
			t.Errorf("%q: %v %v, want %s", selector, names, err, want)
		}
	}
	for selector, why := range map[string]string{
		"zone": "want key=value", "zone=a,": "want key=value", ",": "want key=value", "=a": "is empty", "a b=c": "contains ' '",
		"zone=a,zone=b": "two values", "zone=\x1b[2J": "control", "zone\x1b=a": `'\x1b'`, strings.Repeat("k", 201) + "=a": "201 bytes",
	} {
		if _, err := v.Select(selector); !errors.Is(err, ErrInvalidOption) || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v, want %q", selector, err, why)
		}
	}
}

func TestKindsAndReasonsHaveNames(t *testing.T) {
	t.Parallel()
	got := []any{HostUp, HostDown, HostUpdate, SnapshotDone, ViewStale, ViewFresh, HostEventKind(9), DownReason(0), HostExpired, HostStopped, HostReplaced, DownReason(9)}
	const want = "[up down update snapshot-done stale fresh HostEventKind(9)  expired stopped replaced DownReason(9)]"
	if s := fmt.Sprint(got); s != want {
		t.Errorf("%s, want %s", s, want)
	}
	if HostUp != 0 || HostDown != 1 {
		t.Error("the published numbers have changed")
	}
}
