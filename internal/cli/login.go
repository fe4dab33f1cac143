package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// login gives each request the token of a user. It is got with the first request, in the time which that
// has: etcd's own client gets it when it is made, and has no use for a context or a signal then. It also
// takes no notice of an etcd without users.
//
// A token ends: by its age, by a restart of its member, by a change of any user or role. A request that is
// refused for that reason is made again with a new token. A stream cannot be made again, so it begins with
// a token that is fresh.
type login struct {
	user     string
	password Secret

	mu     sync.Mutex
	token  string
	since  time.Time
	newest *attempt
}

const (
	// freshFor is how long a token is good enough for a stream that begins.
	freshFor = time.Second
	// loginWithin bounds one login.
	loginWithin = 10 * time.Second
	// logins is how often a request is made, each time with a new token.
	logins = 3
)

// loginError says whose login failed.
type loginError struct {
	user string
	err  error
}

func (e *loginError) Error() string { return "log in as " + Quote(e.user) + ": " + e.err.Error() }
func (e *loginError) Unwrap() error { return e.err }

func (l *login) options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(l.unary), grpc.WithChainStreamInterceptor(l.stream)}
}

func (l *login) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if method == etcdserverpb.Auth_Authenticate_FullMethodName {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	token, _ := l.last()
	for n := 1; ; n++ {
		if token == "" {
			var err error
			if token, err = l.renew(ctx, cc); err != nil {
				return err
			}
		}
		err := invoke(with(ctx, token), method, req, reply, cc, opts...)
		if n == logins || !ended(err) {
			return err
		}
		token = l.instead(token)
	}
}

func (l *login) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	token, since := l.last()
	if token == "" || time.Since(since) > freshFor {
		var err error
		if token, err = l.renew(ctx, cc); err != nil {
			return nil, err
		}
	}
	return open(with(ctx, token), desc, cc, method, opts...)
}

// last is the token there is, if there is one.
func (l *login) last() (token string, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token, l.since
}

// instead is the token that has come in place of one that ended; empty where there is none yet.
func (l *login) instead(old string) string {
	token, _ := l.last()
	if token == old {
		return ""
	}
	return token
}

// renew logs in, or waits for a login that has just begun. A login goes on when who asked for it has no time
// left: checking a password is slow by design, and etcd would check it again and again for requests that never
// see its end. One that takes long is not waited for by those who come later: its member may hang.
func (l *login) renew(ctx context.Context, cc *grpc.ClientConn) (string, error) {
	l.mu.Lock()
	a := l.newest
	if a == nil || a.over() || time.Since(a.since) > freshFor {
		a = &attempt{since: time.Now(), done: make(chan struct{})}
		l.newest = a
		go l.try(context.WithoutCancel(ctx), cc, a) // ends with its request, at the latest when the client is closed
	}
	l.mu.Unlock()
	select {
	case <-a.done:
		return a.token, a.err
	case <-ctx.Done():
		return "", status.FromContextError(ctx.Err()).Err()
	}
}

// attempt is a login that is made.
type attempt struct {
	since time.Time
	done  chan struct{}
	token string // set before done is closed, as is err
	err   error
}

func (a *attempt) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// try makes one login. A token counts from the moment it was asked for.
func (l *login) try(ctx context.Context, cc *grpc.ClientConn, a *attempt) {
	defer close(a.done)
	ctx, cancel := context.WithTimeout(ctx, loginWithin)
	defer cancel()
	got, err := etcdserverpb.NewAuthClient(cc).Authenticate(ctx, &etcdserverpb.AuthenticateRequest{Name: l.user, Password: string(l.password)})
	if err != nil {
		a.err = err
		if known := rpctypes.Error(err); !unavailable(known) && ctx.Err() == nil {
			a.err = &loginError{l.user, known}
		}
		return
	}
	a.token = got.Token
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.since.After(l.since) {
		l.token, l.since = a.token, a.since
	}
}

// ended reports whether a request was refused because of its token, which was good before.
func ended(err error) bool {
	err = rpctypes.Error(err)
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision) || errors.Is(err, rpctypes.ErrUserEmpty)
}

func with(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, token)
}
