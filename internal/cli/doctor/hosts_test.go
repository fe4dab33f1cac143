package doctor

import (
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/coordtest"
)

func TestHostsAreLookedAt(t *testing.T) {
	t.Parallel()
	at := func(uuid string) string { return coord.HostsPrefix + uuid }
	named := func(name string) string { return `{"host_uuid":"x","hostname":"` + name + `"}` }
	for name, tt := range map[string]struct {
		keys []key
		want []string // how each line begins; all there are
	}{
		"none":     {nil, []string{"ok hosts /coord/hosts/: 0 registered"}},
		"two":      {[]key{{at("a"), named("n1"), 1}, {at("b"), named("n2"), 2}}, []string{"ok hosts /coord/hosts/: 2 registered"}},
		"no value": {[]key{{at("a"), "", 1}}, []string{"ok hosts /coord/hosts/: 1 registered", "warn hosts a: counts as up, but its value is that of no host: unexpected end of JSON input"}},
		"a value that is none": {[]key{{at("a"), "[\x1b]", 1}, {at("b"), strings.Repeat(" ", 9000) + "{}", 2}}, []string{
			"ok hosts /coord/hosts/: 2 registered", "warn hosts a: counts as up, but its value is that of no host: ", "warn hosts b: counts as up, but its value is that of no host: more than the 8192 bytes that are read",
		}},
		"no lease": {[]key{{at("a"), named("n1"), 0}}, []string{"ok hosts", "warn hosts a: its key is on no lease: it looks up until somebody deletes it, and keeps the host from registering"}},
		"no host": {[]key{{at("a/b"), named("n1"), 1}, {at(""), named("n1"), 1}}, []string{
			"ok hosts /coord/hosts/: 0 registered", "warn hosts /coord/hosts/: is no host, and in the way of none", "warn hosts /coord/hosts/a/b: is no host",
		}},
		"one name twice": {[]key{{at("a"), named("n1"), 1}, {at("b"), named("n1"), 2}, {at("c"), named("n2"), 3}}, []string{
			"ok hosts /coord/hosts/: 3 registered", "note hosts n1: this host name is registered as a, b",
		}},
		"and often": {[]key{{at("a"), named("n1"), 1}, {at("b"), named("n1"), 1}, {at("c"), named("n1"), 1}, {at("d"), named("n1"), 1}, {at("e"), named("n1"), 1}, {at("f"), named("n1"), 1}},
			[]string{"ok hosts", "note hosts n1: this host name is registered as a, b, c, d, e and others"}},
		"many": {[]key{{at("a"), named(""), 0}, {at("b"), named(""), 0}, {at("c"), named(""), 0}, {at("d"), named(""), 0}, {at("e"), named(""), 0}, {at("f"), named(""), 0}},
			[]string{"ok hosts", "warn hosts a", "warn hosts b", "warn hosts c", "warn hosts d", "warn hosts e", "warn hosts /coord/hosts/: 1 more such hosts without a lease"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := visited(t, in(t, tt.keys))
			got := about(found, "hosts")
			ok := len(got) == len(tt.want)
			for i := range min(len(got), len(tt.want)) {
				ok = ok && strings.HasPrefix(got[i], tt.want[i])
			}
			if !ok || strings.Contains(told(found), "\x1b") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestHostsThatCannotBeLookedAt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err   error
		times int
		want  string
	}{
		{rpctypes.ErrGRPCPermissionDenied, 1, "note hosts /coord/hosts/: this user may not look at hosts"},
		{rpctypes.ErrGRPCCorrupt, 1, "fail hosts /coord/hosts/: cannot be listed: "},
		{rpctypes.ErrGRPCCompacted, listTries, "fail hosts /coord/hosts/: cannot be listed: "},
		{rpctypes.ErrGRPCCompacted, 1, "ok hosts /coord/hosts/: 0 registered"},
	} {
		m := in(t, nil)
		m.Inject(coordtest.Rule{Method: coordtest.Range, Skip: roundTrips + 2, Times: tt.times, Action: coordtest.Refuse(tt.err)})
		tells(t, visited(t, m), tt.want)
	}
}
