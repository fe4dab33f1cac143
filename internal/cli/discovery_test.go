package cli

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

// records are what a resolver knows, by service.
type records map[string][]*net.SRV

func (r records) lookup(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	if list, ok := r[service]; ok && proto == "tcp" && name == "example.com" {
		return "", list, nil
	}
	return "", nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// discovered are the endpoints that a command line comes to.
func discovered(t *testing.T, lookup LookupSRV, environ, args string) (string, error) {
	t.Helper()
	c, _, err := parsed(t, strings.Fields(environ), strings.Fields(args))
	if err != nil {
		t.Fatal(err)
	}
	err = c.Discover(t.Context(), Env{LookupSRV: lookup})
	return strings.Join(c.Endpoints, ","), err
}

func TestEndpointsComeFromTheRecordsOfADomain(t *testing.T) {
	t.Parallel()
	secure := []*net.SRV{{Target: "a.example.com.", Port: 2379}, {Target: "b.example.com", Port: 2379}, {Target: "a.example.com.", Port: 2379}, {Target: ".", Port: 0}}
	plain := []*net.SRV{{Target: "c.example.com.", Port: 1}}
	both := records{serviceTLS: secure, servicePlain: plain}
	for _, tt := range []struct {
		records       records
		environ, args string
		want          string
	}{
		{both, "", "--discovery-srv example.com", "https://a.example.com:2379,https://b.example.com:2379"},
		{both, "CONCH_DISCOVERY_SRV=example.com", "", "https://a.example.com:2379,https://b.example.com:2379"},
		{records{servicePlain: plain}, "ETCDCTL_DISCOVERY_SRV=example.com", "", "http://c.example.com:1"},
		{both, "CONCH_ENDPOINTS=x:1", "--discovery-srv example.com --insecure-skip-verify", "https://a.example.com:2379,https://b.example.com:2379"},
		{both, "CONCH_ENDPOINTS=http://x:1", "--discovery-srv example.com --insecure-skip-verify", "https://a.example.com:2379,https://b.example.com:2379"},
		{both, "CONCH_DISCOVERY_SRV=example.com", "--endpoints x:1", "x:1"},
		{both, "CONCH_ENDPOINTS=x:1 ETCDCTL_DISCOVERY_SRV=example.com", "", "x:1"},
		{both, "", "", "localhost:2379"},
	} {
		got, err := discovered(t, tt.records.lookup, tt.environ, tt.args)
		if err != nil || got != tt.want {
			t.Errorf("%s %s: got %s, %v, want %s", tt.environ, tt.args, got, err, tt.want)
		}
	}
}

func TestADomainWithoutRecordsIsUnreachable(t *testing.T) {
	t.Parallel()
	fails := func(ctx context.Context, _, _, name string) (string, []*net.SRV, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("a lookup has no end")
		}
		return "", nil, &net.DNSError{Err: "server misbehaving", Name: name}
	}
	odd := func(context.Context, string, string, string) (string, []*net.SRV, error) {
		return "", nil, errors.New("odd\n")
	}
	plain := records{servicePlain: {{Target: "c", Port: 1}}}
	for _, tt := range []struct {
		lookup LookupSRV
		args   string
		want   string
	}{
		{records{}.lookup, "", `etcd unreachable: no endpoints for the domain "example.com": it has no SRV records _etcd-client-ssl._tcp or _etcd-client._tcp`},
		{plain.lookup, "--insecure-skip-verify", `etcd unreachable: no endpoints for the domain "example.com": it has no SRV records _etcd-client-ssl._tcp`},
		{fails, "", "_etcd-client._tcp: server misbehaving"},
		{odd, "", `: odd\n`},
	} {
		_, err := discovered(t, tt.lookup, "", "--discovery-srv example.com "+tt.args)
		if !errors.Is(err, hold.ErrUnreachable) || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

func TestTheSystemsResolverIsAskedByDefault(t *testing.T) {
	t.Parallel()
	c, _, err := parsed(t, nil, []string{"--discovery-srv", "host.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	c.DialTimeout = time.Nanosecond // no packet leaves
	if err := c.Discover(t.Context(), Env{}); !errors.Is(err, hold.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}
