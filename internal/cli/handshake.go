package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
)

// explaining secures connections, and explains why one fails. gRPC makes a text of an error, so what an
// error means has to be found out before gRPC sees it: in the handshake, and in the first bytes read.
type explaining struct {
	credentials.TransportCredentials
	explain func(first []byte, err error) error // nil: there is nothing to say
}

// ClientHandshake is that of the credentials within.
func (e explaining) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := e.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		if why := e.explain(nil, err); why != nil && ctx.Err() == nil {
			err = why
		}
		return nil, nil, err
	}
	return &listening{Conn: conn, explain: e.explain, heard: make(chan struct{})}, info, nil
}

// Clone is needed of credentials.
func (e explaining) Clone() credentials.TransportCredentials {
	return explaining{e.TransportCredentials.Clone(), e.explain}
}

// listening explains how a connection ends on which nothing was heard yet. One goroutine reads, another writes.
type listening struct {
	net.Conn
	explain func([]byte, error) error
	once    sync.Once
	heard   chan struct{} // closed after the first read
	why     error         // set before that
}

func (l *listening) Read(p []byte) (n int, err error) {
	n, err = l.Conn.Read(p)
	l.once.Do(func() {
		l.why = l.explain(p[:n], err)
		if l.why != nil {
			n, err = 0, l.why
		}
		close(l.heard)
	})
	return n, err
}

// lastWords is how long a write that fails waits for what the server said before it hung up.
const lastWords = 200 * time.Millisecond

func (l *listening) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	if err == nil {
		return n, nil
	}
	late := time.NewTimer(lastWords)
	defer late.Stop()
	select {
	case <-l.heard:
		if l.why != nil {
			return n, l.why
		}
	case <-late.C:
	}
	return n, err
}

// explainPlain says why a connection without TLS failed. A server that speaks TLS answers what it does not
// understand with an alert (record type 21, version 3.x), or hangs up.
func explainPlain(first []byte, err error) error {
	switch {
	case len(first) >= 2 && first[0] == 21 && first[1] == 3:
		return errWantsTLS
	case len(first) == 0 && hungUp(err):
		return errHungUp
	}
	return nil
}

// explainTLS says why one with TLS did.
func explainTLS(_ []byte, err error) error {
	var (
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		name      x509.HostnameError
		record    tls.RecordHeaderError
		alert     *net.OpError
	)
	switch {
	case err == nil:
	case errors.As(err, &authority):
		return errAuthority
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the server's certificate is not valid at this time: %w", invalid)
	case errors.As(err, &invalid):
		return fmt.Errorf("the server's certificate is not acceptable: %w", invalid)
	case errors.As(err, &name):
		return fmt.Errorf("the server's certificate is for another host: %w", name)
	case errors.As(err, &record):
		return errNoTLS
	case errors.As(err, &alert) && alert.Op == "remote error":
		return explainAlert(alert.Err)
	case hungUp(err):
		return errHungUpTLS
	}
	return nil
}

// explainAlert says what the server found wrong with our certificate. With TLS 1.2 one that is missing is a handshake
// that failed.
func explainAlert(alert error) error {
	const failure, bad, unsupported, revoked, expired, unknown, signer, denied, required = 40, 42, 43, 44, 45, 46, 48, 49, 116
	is := func(codes ...tls.AlertError) bool {
		for _, code := range codes {
			if alert.Error() == code.Error() { // the type of the one is not exported, their texts are the same
				return true
			}
		}
		return false
	}
	switch {
	case is(required):
		return errWantsCert
	case is(expired):
		return errCertExpire
	case is(signer):
		return errCertSigner
	case is(failure):
		return errHandshake
	case is(bad, unsupported, revoked, unknown, denied):
		return errCertNotOK
	}
	return nil
}

// hungUp reports whether err says that the other side ended the connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
