package etcdtest

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func TestAMemberWithTLSAndUsersAsksWhoComes(t *testing.T) {
	t.Parallel()
	ca := NewCA(t)
	s := Secure(t, SecureOptions{CA: ca, Mutual: true, TokenTTL: 60})
	if !strings.HasPrefix(s.Endpoint(), "https://127.0.0.1:") {
		t.Errorf("endpoint %s", s.Endpoint())
	}
	root := s.EnableAuth(t)
	if _, err := root.UserAdd(t.Context(), "me", "mine"); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Put(t.Context(), "k", "v"); err != nil {
		t.Errorf("root may not write: %v", err)
	}
	if _, err := s.As(t, "me", "mine").Put(t.Context(), "k", "v"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestAMemberWithoutTLSHasUsersToo(t *testing.T) {
	t.Parallel()
	s := Secure(t, SecureOptions{})
	if _, err := s.EnableAuth(t).Get(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	if _, err := s.Client(t).Get(t.Context(), "k"); !errors.Is(err, rpctypes.ErrUserEmpty) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestCertificatesSayWhatTheyAreToldTo(t *testing.T) {
	t.Parallel()
	ca := NewCA(t)
	roots := ca.Config(Pair{}).RootCAs
	for _, tt := range []struct {
		subject Subject
		host    string
		valid   bool
	}{
		{Subject{}, "localhost", true},
		{Subject{}, "etcd.example", false},
		{Subject{Hosts: []string{"etcd.example"}}, "etcd.example", true},
		{Subject{Hosts: []string{"etcd.example"}}, "localhost", false},
		{Subject{Expired: true}, "localhost", false},
	} {
		cert := ca.Config(ca.Issue(tt.subject)).Certificates[0].Leaf
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: tt.host}); (err == nil) != tt.valid {
			t.Errorf("%+v at %s: %v", tt.subject, tt.host, err)
		}
	}
}
