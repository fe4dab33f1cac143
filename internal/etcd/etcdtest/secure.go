package etcdtest

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/go-coord/coord/internal/etcd/embed"
)

// RootPassword is that of the user root, where EnableAuth made one.
const RootPassword = "root-secret"

// SecureOptions say how a member is secured. The zero value: not at all, as with One.
type SecureOptions struct {
	CA       *CA
	Server   Subject // what the member's certificate says; it has one if there is a CA
	Mutual   bool    // clients have to show a certificate of the CA, too
	TokenTTL uint    // in seconds: see embed.Config
}

// Secure starts a member for this test alone, as One does.
func Secure(t testing.TB, o SecureOptions) *Server {
	t.Helper()
	s := &Server{t: t, ca: o.CA, config: embed.Config{
		Dir: tempDir(t), Listen: reserve(t), Name: "secure", Unsynced: true, CheapPasswords: true, TokenTTL: o.TokenTTL,
	}}
	if o.CA != nil {
		pair := o.CA.Issue(o.Server)
		s.config.TLS = embed.TLS{Cert: pair.Cert, Key: pair.Key}
		if o.Mutual {
			s.config.TLS.ClientCA = o.CA.File
			s.pair = o.CA.Issue(Subject{Name: "root"})
		}
	}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// EnableAuth makes the user root and turns authentication on, and gives a client of that user.
func (s *Server) EnableAuth(t testing.TB) *clientv3.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	client := s.As(t, "", "")
	for _, step := range []func() error{
		func() error { _, err := client.UserAdd(ctx, "root", RootPassword); return err },
		func() error { _, err := client.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := client.AuthEnable(ctx); return err },
	} {
		if err := step(); err != nil {
			t.Fatalf("etcdtest: enable authentication: %v", err)
		}
	}
	return s.As(t, "root", RootPassword)
}

// As gives a client of a user that is closed when t ends; without a user where the name is empty.
func (s *Server) As(t testing.TB, user, password string) *clientv3.Client {
	t.Helper()
	var config *tls.Config
	if s.ca != nil {
		config = s.ca.Config(s.pair)
		if s.config.TLS.ClientCA != "" && user != "" {
			config = s.ca.Config(s.ca.Issue(Subject{Name: user}))
		}
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: s.Endpoints(), Username: user, Password: password, TLS: config, DialTimeout: limit,
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 2 * time.Second,
		Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatalf("etcdtest: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
