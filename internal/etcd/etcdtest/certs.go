package etcdtest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA signs certificates, for servers and clients alike.
type CA struct {
	File string // its own certificate, in PEM

	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Subject is what a certificate says.
type Subject struct {
	Name    string   // common name; default "etcd"
	Hosts   []string // names and addresses; default 127.0.0.1 and localhost
	Expired bool
}

// Pair are the files of a certificate and its key, in PEM.
type Pair struct{ Cert, Key string }

// NewCA makes an authority whose files are gone when t ends.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{t: t, dir: tempDir(t)}
	ca.File = filepath.Join(ca.dir, "ca.pem")
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority " + rand.Text()}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	ca.cert, ca.key = ca.sign(template, nil, nil, ca.File, "")
	return ca
}

// Issue makes a certificate.
func (ca *CA) Issue(s Subject) Pair {
	ca.t.Helper()
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: cmp.Or(s.Name, "etcd")},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	hosts := s.Hosts
	if hosts == nil {
		hosts = []string{"127.0.0.1", "localhost"}
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if s.Expired {
		template.NotAfter = time.Now().Add(-time.Hour)
	}
	name := filepath.Join(ca.dir, rand.Text())
	pair := Pair{name + ".pem", name + ".key"}
	ca.sign(template, ca.cert, ca.key, pair.Cert, pair.Key)
	return pair
}

// sign makes a key and a certificate for it, signed by a parent or by itself, and writes the files that are named.
func (ca *CA) sign(template, parent *x509.Certificate, signer *ecdsa.PrivateKey, certFile, keyFile string) (*x509.Certificate, *ecdsa.PrivateKey) {
	ca.t.Helper()
	must := func(err error) {
		if err != nil {
			ca.t.Helper()
			ca.t.Fatalf("etcdtest: make certificate: %v", err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		must(err)
	}
	template.NotBefore = time.Now().Add(-2 * time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(24 * time.Hour)
	}
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(err)
	must(os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	if keyFile != "" {
		raw, err := x509.MarshalPKCS8PrivateKey(key)
		must(err)
		must(os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
	}
	cert, err := x509.ParseCertificate(der)
	must(err)
	return cert, key
}

// Config is what a client of the authority's servers needs, which shows the certificate of pair; none if it is empty.
func (ca *CA) Config(pair Pair) *tls.Config {
	ca.t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(ca.cert)
	if pair != (Pair{}) {
		cert, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			ca.t.Fatalf("etcdtest: load certificate: %v", err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return config
}
