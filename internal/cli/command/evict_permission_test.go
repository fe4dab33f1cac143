package command

import (
	"fmt"
	"path/filepath"
	"testing"

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

// The request stands on the lease of the hold, which then can be renewed only by who may write the request as well. Red when
// a holder needs no permission to write it: the renewals are refused, and the hold is lost to its clock at 0.7 s.
func TestAHoldOutlivesTheRequestToLeave(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	for kind, row := range map[string]struct {
		needs []cli.Need
		args  []string
	}{
		hold.KindElect: {leadNeeds("x", true), []string{"elect", "x"}},
		hold.KindSema:  {semaNeeds("x", true, hostname()), []string{"sema", "x", "--max", "2", "--spread"}},
	} {
		holder, operator := "holds "+kind, "asks "+kind
		addUser(t, root, holder, mayMeet(row.needs))
		addUser(t, root, operator, mayMeet(evictNeeds(view.Name{Kind: kind, Name: "x"}, false)))
		h, dir := as(server, holder), t.TempDir()
		code := h.start(append(row.args, "--ttl", "2s", "--kill-after", "1m", "--", "sh", "-c",
			`trap 'sleep 3; exit' TERM; echo up >"$1"; while :; do sleep 0.1; done`, "sh", filepath.Join(dir, "up"))...)
		awaits(t, func() bool { return exists(filepath.Join(dir, "up")) })
		s := as(server, operator)
		if c := s.conch("evict", kind, "x"); c != 0 {
			t.Errorf("code %d; %s", c, s.stderr.String())
		}
		contains(t, s.stdout.String(), "has left (evicted)")
		if c := wait(t, code); c != hold.CodeLost {
			t.Errorf("code %d; %s", c, h.stderr.String())
		}
		contains(t, h.stderr.String(), "msg=released", "reason=evicted")
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
