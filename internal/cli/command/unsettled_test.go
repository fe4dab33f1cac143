package command

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// recordOf is the open record of a hold by the lease of a candidate.
func recordOf(lease string) string { return `{"lease":"` + lease + `","n":1,"ttl":10}` }

// settler is an office whose first in the queue waits for the end of another's hold.
type settler struct {
	t            *testing.T
	cli          *clientv3.Client
	office, open string
	key, lease   string
}

func newSettler(t *testing.T) *settler {
	t.Helper()
	s := &settler{t: t, cli: etcdtest.Shared(t).Client(t), office: etcdtest.Office(t)}
	s.open = settle(s.office).Open
	s.put(s.open, recordOf("7b"))
	s.lease = put(t, s.cli, s.office, "next")
	id, err := hold.ParseLease(s.lease)
	if err != nil {
		t.Fatal(err)
	}
	s.key = hold.ElectKey(s.office, id).String()
	return s
}

func (s *settler) put(key, value string) {
	s.t.Helper()
	if _, err := s.cli.Put(s.t.Context(), key, value); err != nil {
		s.t.Fatal(err)
	}
}

func (s *settler) remove(key string) {
	s.t.Helper()
	if _, err := s.cli.Delete(s.t.Context(), key); err != nil {
		s.t.Fatal(err)
	}
}

// Each was broken on purpose and turned one of these red: whoever is first leads; the record is read as it is now
// instead of at the change; the end of settling is seen by the probe only, or never; a hold right after settling is skipped.
func TestAFollowerTellsASettlerFromAHolder(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*settler){
		"the earlier hold says that it is over":  func(s *settler) { s.remove(s.open) },
		"it is waited out, and the settler wins": func(s *settler) { s.put(s.open, recordOf(s.lease)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSettler(t)
			f := follow(t, s.cli, s.office)
			f.every, f.within = time.Hour, time.Hour // no probe comes to its help
			if err := f.list(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.run(t)
			f.tells(t, "next settles")
			end(s)
			f.tells(t, "next")
			s.remove(s.key)
			f.tells(t, "")
		})
	}
}

func TestAFollowerSkipsNoHoldThatCameOfSettling(t *testing.T) {
	t.Parallel()
	s := newSettler(t)
	f := follow(t, s.cli, s.office)
	if err := f.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	// All of it is over before the first event is read.
	s.put(s.open, recordOf(s.lease))
	lease := put(t, s.cli, s.office, "behind")
	s.remove(s.key)
	s.put(s.open, recordOf(lease))
	f.run(t)
	f.tells(t, "next settles", "next", "behind settles", "behind")
}

func TestAFollowerSeesTheEndOfSettlingAlsoByItsProbe(t *testing.T) {
	t.Parallel()
	s := newSettler(t)
	proxy := etcdtest.NewProxy(t, etcdtest.Shared(t).Endpoint())
	f := follow(t, etcdtest.Client(t, proxy.Addr()), s.office)
	if err := f.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.run(t)
	f.tells(t, "next settles")
	proxy.Cut()
	f.tells(t, "away")
	s.remove(s.open)
	proxy.Revive()
	f.tells(t, "back", "next")
}
