package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// TLS is how a connection is secured. It has what was in the files, not their names: a guard releases with
// the certificate that the wrapper had, whatever became of the file.
type TLS struct {
	On         bool   `json:"on"`               // also for endpoints without a scheme
	CACert     []byte `json:"cacert,omitempty"` // PEM; empty: the authorities of the system
	Cert       []byte `json:"cert,omitempty"`   // PEM; empty: none is shown
	Key        Secret `json:"key,omitempty"`    // PEM
	SkipVerify bool   `json:"skip_verify,omitempty"`
}

// secure reports whether the connection is one with TLS. Endpoints are all of one kind.
func (s Settings) secure() bool {
	return s.TLS.On || len(s.Endpoints) > 0 && strings.HasPrefix(s.Endpoints[0], "https://")
}

// transport makes what secures the connection, or does not, and says in plain words why it fails.
func (s Settings) transport() (credentials.TransportCredentials, error) {
	if !s.secure() {
		return explaining{insecure.NewCredentials(), explainPlain}, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.TLS.SkipVerify}
	if len(s.TLS.CACert) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(s.TLS.CACert) {
			return nil, errNoCert
		}
	}
	if len(s.TLS.Cert) > 0 {
		pair, err := tls.X509KeyPair(s.TLS.Cert, []byte(s.TLS.Key))
		if err != nil {
			return nil, fmt.Errorf("use certificate: %w", err)
		}
		// Shown whatever authorities the server names: else a server that does not know ours would say that none was shown.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return explaining{credentials.NewTLS(config), explainTLS}, nil
}

// Why a connection did not come about, in the words of who has to mend it.
var (
	errAuthority  = errors.New("the server's certificate is signed by an authority that is not trusted here: is it the right --cacert?")
	errNoTLS      = errors.New("the server does not speak TLS: use http:// and no TLS flags, or another port")
	errWantsTLS   = errors.New("the server speaks TLS: use https://")
	errHungUp     = errors.New("the server hung up without a word: it may want TLS (https://), or be no etcd")
	errHungUpTLS  = errors.New("the server hung up during the TLS handshake: it does not seem to speak TLS (then use http:// and no TLS flags)")
	errHandshake  = errors.New("the server broke off the TLS handshake: it may want a client certificate (--cert and --key)")
	errWantsCert  = errors.New("the server wants a client certificate: give --cert and --key")
	errCertNotOK  = errors.New("the server does not accept the client certificate of --cert")
	errCertExpire = errors.New("the server says that the client certificate of --cert has expired")
	errCertSigner = errors.New("the server does not know the authority that signed the client certificate of --cert")
)
