package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// Who may read asks, and each verb that writes takes what docs/cron-runs.md says, and names it where it is missing.
func TestWhatTheVerbsAboutRunsMayWrite(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	put := func(key, value string, o ...clientv3.OpOption) {
		t.Helper()
		if _, err := root.Put(t.Context(), key, value, o...); err != nil {
			t.Fatal(err)
		}
	}
	lease, err := root.Grant(t.Context(), 600)
	if err != nil {
		t.Fatal(err)
	}
	put(record.JobKey("x"), `{"schedule":"@every 1h","cmd":["true"]}`)
	open := record.Encode(record.Open{Host: "node1", Lease: int64(lease.ID), Kind: record.Manual})
	put(record.OpenKey("x", record.ID{Tick: 7}), open)
	// What a daemon has on its lease.
	put(record.Runs+"x/7", open, clientv3.WithLease(lease.ID))
	put(record.Nodes+"node1", "{}", clientv3.WithLease(lease.ID))
	put(record.Cards+"node1", "{}", clientv3.WithLease(lease.ID))

	addUser(t, root, "asks", grants{record.Root: readOnly})
	for _, args := range [][]string{{"ps"}, {"nodes"}, {"why", "x", "3600"}} {
		s := as(server, "asks")
		if code := s.conch(append([]string{"cron"}, args...)...); code != 0 {
			t.Errorf("%q: code %d; %s", args, code, s.stderr.String())
		}
	}
	for i, tt := range []struct {
		args   []string
		writes []string
	}{
		{[]string{"run", "x"}, []string{record.Wants + "x/"}},
		{[]string{"backfill", "x", "--from", "3600", "--to", "3600"}, []string{record.Wants + "x/"}},
		{[]string{"kill", "x"}, []string{record.Kills + "x/", record.Runs, record.Nodes, record.Cards}},
		{[]string{"pause", "x"}, []string{record.JobKey("x")}},
		{[]string{"resume", "x"}, []string{record.JobKey("x")}},
		{[]string{"pause", "--all"}, []string{record.Pause}},
		{[]string{"resume", "--all"}, []string{record.Pause}},
		{[]string{"drain", "node1"}, []string{record.Drains + "node1"}},
		{[]string{"undrain", "node1"}, []string{record.Drains + "node1"}},
	} {
		s := as(server, "asks")
		if code := s.conch(append([]string{"cron"}, tt.args...)...); code != hold.CodePermission {
			t.Errorf("%q: code %d for who may read only; %s", tt.args, code, s.stderr.String())
		}
		for _, key := range tt.writes {
			prefix := ""
			if strings.HasSuffix(key, "/") {
				prefix = "the prefix "
			}
			contains(t, s.stderr.String(), "write "+prefix+key)
		}
		for n := range len(tt.writes) * min(1, len(tt.writes)-1) { // all but one of several
			g := grants{record.Root: readOnly}
			for _, key := range slices.Delete(slices.Clone(tt.writes), n, n+1) {
				g[key] = writeOnly
			}
			addUser(t, root, fmt.Sprint("lacks ", tt.writes[n]), g)
			s := as(server, fmt.Sprint("lacks ", tt.writes[n]))
			if code := s.conch(append([]string{"cron"}, tt.args...)...); code != hold.CodePermission || !strings.HasSuffix(s.stderr.String(), "may not write the prefix "+tt.writes[n]+"\n") {
				t.Errorf("%q without %s: code %d; %s", tt.args, tt.writes[n], code, s.stderr.String())
			}
		}
		user := fmt.Sprint("user ", i)
		g := grants{record.Root: readOnly}
		for _, key := range tt.writes {
			g[key] = writeOnly
		}
		addUser(t, root, user, g)
		s = as(server, user)
		if code := s.conch(append([]string{"cron"}, tt.args...)...); code != 0 {
			t.Errorf("%q: code %d; %s", tt.args, code, s.stderr.String())
		}
	}
}
