package command

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

const password = "geheim"

// grants are the permissions of a user, by key; one that ends with a slash is a prefix.
type grants map[string]clientv3.PermissionType

const (
	readOnly  = clientv3.PermissionType(clientv3.PermRead)
	writeOnly = clientv3.PermissionType(clientv3.PermWrite)
	readWrite = clientv3.PermissionType(clientv3.PermReadWrite)
)

// all are what conch elect needs for an office.
func all(office string) grants {
	open, last := hold.OfficeKeys(office)
	return grants{
		hold.ElectRange(office): readWrite, open.String(): readWrite, last.String(): writeOnly,
		hold.EvictRange(hold.KindElect, office): readWrite,
	}
}

// allSema are what conch sema --spread needs for a semaphore.
func allSema(name string) grants {
	open, last := hold.SemaRecords(name)
	return grants{
		hold.SemaRange(name): readWrite, hold.SlotPrefix(name) + "/": readWrite, open + "/": readWrite, last + "/": writeOnly,
		hold.SpreadPrefix(name, hostname()) + "/": readWrite, hold.EvictRange(hold.KindSema, name): readWrite,
	}
}

// addUser makes a user with a role of its own.
func addUser(t *testing.T, root *clientv3.Client, name string, g grants) {
	t.Helper()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(root.UserAdd(t.Context(), name, password))
	must(root.RoleAdd(t.Context(), name))
	for key, what := range g {
		end := ""
		if strings.HasSuffix(key, "/") || strings.HasSuffix(key, "@") {
			end = clientv3.GetPrefixRangeEnd(key)
		}
		must(root.RoleGrantPermission(t.Context(), name, key, end, what))
	}
	must(root.UserGrantRole(t.Context(), name, name))
}

// as is a shell of a user of a member.
func as(server *etcdtest.Server, user string) *shell {
	return newShell("CONCH_ENDPOINTS="+server.Endpoint(), "CONCH_TTL=60s", "CONCH_USER="+user+":"+password)
}

func TestEachPermissionIsNeededAndNamedWhereItIsMissing(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	office := etcdtest.Office(t)
	for _, row := range []struct {
		kind  string
		all   func(string) grants
		needs []cli.Need
		run   []string
	}{
		{hold.KindElect, all, leadNeeds(office, true), []string{"elect", office, "--", "true"}},
		{hold.KindSema, allSema, semaNeeds(office, true, hostname()), []string{"sema", office, "--max", "2", "--spread", "--", "true"}},
	} {
		addUser(t, root, "whole "+row.kind, row.all(office))
		s := as(server, "whole "+row.kind)
		if code := s.conch(row.run...); code != 0 {
			t.Fatalf("code %d; %s", code, s.stderr.String())
		}
		for _, n := range row.needs {
			t.Run(n.String(), func(t *testing.T) {
				user := n.String()
				g := row.all(office)
				g[n.Key] = writeOnly
				if n.Writes {
					g[n.Key] = readOnly
				}
				addUser(t, root, user, g)
				s := as(server, user)
				if code := s.conch(row.run...); code != hold.CodePermission {
					t.Errorf("code %d, want 77", code)
				}
				if want := fmt.Sprintf("conch: permission denied by etcd: user %s may not %s\n", cli.Quote(user), n); s.stderr.String() != want {
					t.Errorf("got %q, want %q", s.stderr.String(), want)
				}
			})
		}
	}
	queue(t, root, office, 0)
}

func TestWhoTakesNoMoreThanPermissionToRead(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	office := etcdtest.Office(t)
	addUser(t, root, "looks", grants{hold.Root: readOnly})
	addUser(t, root, "blind", grants{})
	s := as(server, "looks")
	if code := s.conch("elect", office, "--who"); code != hold.CodeNo || s.stderr.String() != "" {
		t.Errorf("code %d; %s", code, s.stderr.String())
	}
	open, last := hold.OfficeKeys(office)
	for _, question := range []string{"--who", "--watch", "--assert"} {
		s = as(server, "blind")
		if code := s.conch("elect", office, question); code != hold.CodePermission || s.stdout.String() != "" {
			t.Errorf("%s: code %d; %s", question, code, s.stdout.String())
		}
		contains(t, s.stderr.String(), fmt.Sprintf(`user "blind" may not read the prefix %s, read %s, read %s`, hold.ElectRange(office), open, last))
	}

	// Without settling the records are nobody's business.
	addUser(t, root, "simple", grants{hold.ElectRange(office): readWrite, hold.EvictRange(hold.KindElect, office): readWrite})
	s = as(server, "simple")
	if code := s.conch("elect", office, "--settle", "off", "--quiet", "--", "true"); code != 0 {
		t.Errorf("code %d; %s", code, s.stderr.String())
	}
}

// holding is a term of a user.
func holding(t *testing.T, server *etcdtest.Server, user, office string, ttl int) *coord.Term {
	t.Helper()
	s := cli.Settings{Endpoints: server.Endpoints(), DialTimeout: time.Minute, User: user, Password: password}
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	el, err := coord.NewElection(t.Context(), client, coord.ElectionOptions{Key: hold.ElectPrefix(office), TTL: ttl, Settle: settle(office)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = el.Close() })
	term, err := el.CampaignTerm(t.Context(), "me")
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// renewed waits for a renewal.
func renewed(t *testing.T, term *coord.Term) {
	t.Helper()
	select {
	case <-term.Renewed(): // an earlier one, that nobody waited for
	default:
	}
	select {
	case <-term.Renewed():
	case <-term.Lost():
		t.Fatalf("the hold is lost: %v", context.Cause(term.Context()))
	case <-time.After(time.Minute):
		t.Fatal("no renewal")
	}
}

// TestAHoldOutlivesItsToken: tokens end after a second without use, and renewals are further apart.
func TestAHoldOutlivesItsToken(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{TokenTTL: 1})
	root := server.EnableAuth(t)
	office := etcdtest.Office(t)
	addUser(t, root, "me", all(office))
	term := holding(t, server, "me", office, 30)
	renewed(t, term)

	// Any change of users or roles ends all tokens, and so does a restart, after which no watch has one.
	addUser(t, root, "somebody else", grants{})
	renewed(t, term)
	server.Stop()
	server.Start()
	renewed(t, term)

	// What happens to the key is still heard of.
	if _, err := root.Delete(t.Context(), term.Keys().Key); err != nil {
		t.Fatal(err)
	}
	select {
	case <-term.Lost():
	case <-time.After(time.Minute):
		t.Error("the loss of the key was not heard of")
	}
}

func TestAHoldDoesNotOutliveItsPassword(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	office := etcdtest.Office(t)
	addUser(t, root, "me", all(office))
	term := holding(t, server, "me", office, 3)
	if _, err := root.UserChangePassword(t.Context(), "me", "anders"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-term.Lost():
	case <-time.After(time.Minute):
		t.Error("the hold goes on")
	}
}

// TestAWaiterWhosePasswordIsChangedEnds: it would ask in vain for ever. Who starts it anew gives it the new one.
func TestAWaiterWhosePasswordIsChangedEnds(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	office := etcdtest.Office(t)
	addUser(t, root, "me", all(office))
	addUser(t, root, "leads", all(office))
	holding(t, server, "leads", office, 60)
	s := as(server, "me")
	code := s.start("elect", office, "--ttl", "3s", "--", "true")
	queue(t, root, office, 2)
	if _, err := root.UserChangePassword(t.Context(), "me", "anders"); err != nil {
		t.Fatal(err)
	}
	if got := wait(t, code); got != hold.CodeUnreachable {
		t.Errorf("code %d, want 69", got)
	}
	contains(t, s.stderr.String(), "msg=waiting", `conch: etcd unreachable: user "me": etcd does not know this user, or the password is wrong`)
}

// TestAGuardReleasesWithWhatWasInTheFiles has no files any more, but TLS both ways and a user.
func TestAGuardReleasesWithWhatWasInTheFiles(t *testing.T) {
	t.Parallel()
	ca := etcdtest.NewCA(t)
	server := etcdtest.Secure(t, etcdtest.SecureOptions{CA: ca, Mutual: true})
	root := server.EnableAuth(t)
	office := etcdtest.Office(t)
	addUser(t, root, "me", all(office))
	read := func(path string) []byte {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	pair := ca.Issue(etcdtest.Subject{})
	s := cli.Settings{
		Endpoints: server.Endpoints(), DialTimeout: time.Minute, User: "me", Password: password,
		TLS: cli.TLS{On: true, CACert: read(ca.File), Cert: read(pair.Cert), Key: cli.Secret(read(pair.Key))},
	}
	el, err := coord.NewElection(t.Context(), root, coord.ElectionOptions{Key: hold.ElectPrefix(office), TTL: 60, Settle: settle(office)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = el.Close() })
	if err := el.Campaign(t.Context(), "dead"); err != nil {
		t.Fatal(err)
	}
	_, keys := testament(t, el)
	if err := releaseFrom(strings.NewReader(string(s.Encode())), strings.NewReader(keys), false); err != nil {
		t.Fatal(err)
	}
	queue(t, root, office, 0)
}

func TestEndpointsAreFoundByTheirDomain(t *testing.T) {
	t.Parallel()
	host, port, err := net.SplitHostPort(etcdtest.Shared(t).Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	s, office := newShell("CONCH_TTL=60s"), etcdtest.Office(t)
	s.lookupSRV = func(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
		if service != "etcd-client" || proto != "tcp" || name != "example.com" {
			return "", nil, &net.DNSError{Err: "no such host", IsNotFound: true}
		}
		return "", []*net.SRV{{Target: host, Port: uint16(number)}}, nil
	}
	if code := s.conch("elect", office, "--discovery-srv", "example.com", "--quiet", "--", "sh", "-c", "exit 3"); code != 3 {
		t.Errorf("code %d; %s", code, s.stderr.String())
	}
	if code := s.conch("elect", office, "--discovery-srv", "example.com", "--who"); code != hold.CodeNo {
		t.Errorf("code %d; %s", code, s.stderr.String())
	}
	contains(t, s.stdout.String(), "is vacant; last held by")
	if code := s.conch("elect", office, "--discovery-srv", "example.com", "--assert"); code != hold.CodeNo {
		t.Errorf("code %d; %s", code, s.stderr.String())
	}
	if code := s.conch("__complete", "elect", "--discovery-srv", "example.com", office[:5]); code != 0 {
		t.Errorf("code %d; %s", code, s.stderr.String())
	}
	contains(t, s.stdout.String(), office)
}

func TestADomainWithoutRecordsIsUnreachable(t *testing.T) {
	t.Parallel()
	status := filepath.Join(t.TempDir(), "status")
	for _, args := range [][]string{
		{"elect", "x", "--who"}, {"elect", "x", "--watch"}, {"elect", "x", "--assert"}, {"doctor"},
		{"elect", "x", "--status-file", status, "--", "true"},
	} {
		s := newShell("CONCH_DIAL_TIMEOUT=1ns", "CONCH_DISCOVERY_SRV=host.invalid")
		if code := s.conch(args...); code != hold.CodeUnreachable {
			t.Errorf("%q: code %d", args, code)
		}
		contains(t, s.stderr.String(), `conch: etcd unreachable: no endpoints for the domain "host.invalid"`)
	}
	raw, err := os.ReadFile(status)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(raw), `"outcome":"unreachable","code":69`)
}
