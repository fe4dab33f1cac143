package command

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// mayMeet are permissions for needs.
func mayMeet(needs []cli.Need) grants {
	g := grants{}
	for _, n := range needs {
		what := readOnly
		if n.Writes {
			what = writeOnly
		}
		if before, there := g[n.Key]; there && before != what {
			what = readWrite
		}
		g[n.Key] = what
	}
	return g
}

// client is one of a user of a member.
func client(t *testing.T, server *etcdtest.Server, user string) *clientv3.Client {
	t.Helper()
	s := cli.Settings{Endpoints: server.Endpoints(), DialTimeout: time.Minute, User: user, Password: password}
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// The request stands on the lease of the hold, which then can be renewed and revoked only by who may write the request as
// well. Red when a holder needs no permission for that, or who asks none for the other keys of the lease.
func TestAHoldOutlivesTheRequestToLeave(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	slot := hold.SlotKey("x", 2, 0).String()
	for kind, row := range map[string]struct {
		needs []cli.Need
		keys  []string // of a hold
	}{
		hold.KindElect: {leadNeeds("x", true), []string{hold.ElectKey("x", 7).String()}},
		hold.KindSema:  {semaNeeds("x", true, hostname()), []string{hold.SemaKey("x", 2, 7).String(), slot, hold.SpreadPrefix("x", hostname()) + "/7"}},
	} {
		holder, operator := "holds "+kind, "asks "+kind
		addUser(t, root, holder, mayMeet(row.needs))
		addUser(t, root, operator, mayMeet(evictNeeds(view.Name{Kind: kind, Name: "x"}, false)))
		holds, asks := client(t, server, holder), client(t, server, operator)
		lease, err := holds.Grant(t.Context(), 60)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range row.keys {
			if _, err := holds.Put(t.Context(), key, "", clientv3.WithLease(lease.ID)); err != nil {
				t.Fatalf("put %s: %v", key, err)
			}
		}
		key := hold.EvictKey(kind, "x", int64(lease.ID)).String()
		if _, err := asks.Put(t.Context(), key, "", clientv3.WithLease(lease.ID)); err != nil {
			t.Errorf("%s: to ask: %v", kind, err)
		}
		if _, err := holds.KeepAliveOnce(t.Context(), lease.ID); err != nil {
			t.Errorf("%s: to renew: %v", kind, err)
		}
		if _, err := holds.Revoke(t.Context(), lease.ID); err != nil {
			t.Errorf("%s: to revoke: %v", kind, err)
		}
	}
}

func TestEachPermissionToEvictIsNeededAndNamedWhereItIsMissing(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	addUser(t, root, "holder", grants{hold.Root: readWrite})
	for i, name := range []view.Name{{Kind: hold.KindElect, Name: "x"}, {Kind: hold.KindSema, Name: "x"}} {
		dir := t.TempDir()
		run := []string{"elect", "x"}
		if name.Kind == hold.KindSema {
			run = []string{"sema", "x", "--max", "2", "--spread"}
		}
		h := as(server, "holder")
		code := h.start(append(run, "--", "sh", "-c", `echo $CONCH_REV >"$1"; exec sleep 600`, "sh", filepath.Join(dir, "rev"))...)
		var rev string
		awaits(t, func() bool {
			if exists(filepath.Join(dir, "rev")) {
				rev = content(t, filepath.Join(dir, "rev"))
			}
			return len(rev) > 1
		})
		rev = rev[:len(rev)-1]
		for _, force := range []bool{false, true} {
			args := []string{"evict", name.Kind, name.Name}
			if force {
				args = append(args, "--force", "--rev", rev)
			}
			needs := evictNeeds(name, force)
			for j := range needs {
				user := fmt.Sprintf("%d %v %d", i, force, j)
				addUser(t, root, user, mayMeet(append(append([]cli.Need{}, needs[:j]...), needs[j+1:]...)))
				s := as(server, user)
				if c := s.conch(args...); c != hold.CodePermission {
					t.Errorf("%q without %s: code %d, want 77; %s", args, needs[j], c, s.stdout.String())
				}
				if want := fmt.Sprintf("conch: permission denied by etcd: user %s may not %s\n", cli.Quote(user), needs[j]); s.stderr.String() != want {
					t.Errorf("%q: got %q, want %q", args, s.stderr.String(), want)
				}
			}
		}
		user := fmt.Sprintf("%d forces", i)
		addUser(t, root, user, mayMeet(evictNeeds(name, true)))
		s := as(server, user)
		if c := s.conch("evict", name.Kind, name.Name, "--force", "--rev", rev); c != 0 {
			t.Errorf("code %d; %s", c, s.stderr.String())
		}
		if c := wait(t, code); c != hold.CodeLost {
			t.Errorf("code %d; %s", c, h.stderr.String())
		}
	}
}
