package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// read gives what is in a file.
func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// trusting are settings that trust an authority, and show a certificate where there is one.
func trusting(t *testing.T, ca *etcdtest.CA, pair etcdtest.Pair, endpoints ...string) Settings {
	s := Settings{Endpoints: endpoints, DialTimeout: time.Minute, TLS: TLS{On: true, CACert: read(t, ca.File)}}
	if pair.Cert != "" {
		s.TLS.Cert, s.TLS.Key = read(t, pair.Cert), Secret(read(t, pair.Key))
	}
	return s
}

// presents is a gRPC server that shows a certificate. With TLS 1.2 it asks for one, too, if it has an authority for that.
func presents(t *testing.T, ca *etcdtest.CA, s etcdtest.Subject, change func(*tls.Config)) string {
	t.Helper()
	config := ca.Config(ca.Issue(s))
	if change != nil {
		change(config)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return l.Addr().String()
}

func TestAClientAndAServerThatTrustEachOtherConnect(t *testing.T) {
	t.Parallel()
	ca := etcdtest.NewCA(t)
	server := etcdtest.Secure(t, etcdtest.SecureOptions{CA: ca, Mutual: true})
	s := trusting(t, ca, ca.Issue(etcdtest.Subject{Name: "me"}), server.Endpoint())
	for name, change := range map[string]func(*Settings){
		"https":                     func(*Settings) {},
		"no scheme":                 func(s *Settings) { s.Endpoints = []string{strings.TrimPrefix(server.Endpoint(), "https://")} },
		"anybody may be the server": func(s *Settings) { s.TLS.CACert, s.TLS.SkipVerify = nil, true },
		"one live among dead ones": func(s *Settings) {
			s.Endpoints = []string{"https://" + etcdtest.Refused(t), "https://" + etcdtest.Silent(t), server.Endpoint()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := s
			change(&s)
			// As the guard gets it.
			s, err := DecodeSettings(s.Encode())
			if err != nil {
				t.Fatal(err)
			}
			if err := ask(t.Context(), t, s); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAConnectionThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	ca, other := etcdtest.NewCA(t), etcdtest.NewCA(t)
	mutual := etcdtest.Secure(t, etcdtest.SecureOptions{CA: ca, Mutual: true}).Endpoint()
	plain := etcdtest.Shared(t).Endpoint()
	tls12 := func(c *tls.Config) {
		c.MaxVersion, c.ClientAuth, c.ClientCAs = tls.VersionTLS12, tls.RequireAndVerifyClientCert, c.RootCAs
	}
	mine := ca.Issue(etcdtest.Subject{Name: "me"})
	for name, tt := range map[string]struct {
		s    Settings
		want string
	}{
		"wrong authority":          {trusting(t, other, mine, mutual), "signed by an authority that is not trusted here: is it the right --cacert?"},
		"system's authorities":     {Settings{Endpoints: []string{mutual}}, "signed by an authority that is not trusted here"},
		"expired":                  {trusting(t, ca, mine, presents(t, ca, etcdtest.Subject{Expired: true}, nil)), "not valid at this time: x509: certificate has expired"},
		"other host":               {trusting(t, ca, mine, presents(t, ca, etcdtest.Subject{Hosts: []string{"etcd.example"}}, nil)), "for another host: x509: "},
		"no client certificate":    {trusting(t, ca, etcdtest.Pair{}, mutual), "wants a client certificate: give --cert and --key"},
		"expired client":           {trusting(t, ca, ca.Issue(etcdtest.Subject{Expired: true}), mutual), "client certificate"},
		"client of another signer": {trusting(t, ca, other.Issue(etcdtest.Subject{}), mutual), "client certificate"},
		"none, TLS 1.2":            {trusting(t, ca, etcdtest.Pair{}, presents(t, ca, etcdtest.Subject{}, tls12)), "client certificate"},
		"plain to a TLS port":      {Settings{Endpoints: []string{strings.TrimPrefix(mutual, "https://")}}, "TLS"},
		"http to a TLS port":       {Settings{Endpoints: []string{strings.Replace(mutual, "https", "http", 1)}}, "TLS"},
		"TLS to a plain port":      {trusting(t, ca, mine, plain), "speak TLS"},
		"https to a plain port":    {Settings{Endpoints: []string{"https://" + plain}}, "speak TLS"},
		"TLS to a web server":      {trusting(t, ca, mine, etcdtest.NotGRPC(t)), "does not speak TLS"},
		"TLS to a silent port":     {trusting(t, ca, mine, etcdtest.Silent(t)), "no answer"},
		"TLS to a dead port":       {trusting(t, ca, mine, etcdtest.Refused(t)), "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.s.DialTimeout = 500 * time.Millisecond
			err := ask(t.Context(), t, tt.s)
			if !errors.Is(err, hold.ErrUnreachable) {
				t.Fatalf("got %v", err)
			}
			t.Logf("%v", err)
			text := OneLine(err)
			if !strings.Contains(text, tt.want) || !strings.Contains(text, tt.s.Endpoints[0]) {
				t.Errorf("%q does not say what and why (%q)", text, tt.want)
			}
		})
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	s := Settings{Endpoints: []string{"a:1"}, Password: "geheim", TLS: TLS{Key: "geheim"}}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "password", s.Password, "all", s)
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%+v %#v %q", s, s, s.Password), log.String()} {
		if strings.Contains(text, "geheim") {
			t.Errorf("%s", text)
		}
		if !strings.Contains(text, hidden) {
			t.Errorf("%s: nothing is hidden", text)
		}
	}
	if Secret("").String() != "" {
		t.Error("no secret looks like one")
	}
}

func TestAClientOfBadSettingsIsNotMade(t *testing.T) {
	t.Parallel()
	for _, bad := range []TLS{{On: true, CACert: []byte("x")}, {On: true, Cert: []byte("x"), Key: "x"}} {
		if c, err := (Settings{Endpoints: []string{"a:1"}, TLS: bad}).Client(); err == nil {
			c.Close()
			t.Errorf("%+v makes a client", bad)
		}
	}
}
