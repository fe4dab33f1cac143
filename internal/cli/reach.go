package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/go-coord/coord/internal/hold"
)

// Reach makes one request and repeats it while no endpoint can take it, for the dial timeout in total. The
// request is the proof that etcd is there, so no round trip is spent on asking. request has to be one that
// may be repeated.
//
// An error is classified (see Classify). When ctx ends first, its cause is returned.
func (s Settings) Reach(ctx context.Context, cli *clientv3.Client, request func(context.Context) error) error {
	try, cancel := context.WithTimeout(ctx, s.DialTimeout)
	defer cancel()
	pause := 20 * time.Millisecond
	var last error
	for {
		err := request(try)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case try.Err() == nil && !unavailable(err):
			return Classify(err)
		case unavailable(err):
			last = err
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, 200*time.Millisecond)
		case <-try.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return s.unreached(cli, last)
		}
	}
}

// unreached says that nobody answered in time, and why as far as that is known.
func (s Settings) unreached(cli *clientv3.Client, last error) error {
	why := "no answer"
	if last == nil {
		last = connectionError(cli)
	}
	if last != nil {
		why = plainReason(last)
	}
	return fmt.Errorf("%w at %s within %v: %s", hold.ErrUnreachable, strings.Join(s.Endpoints, ","), s.DialTimeout, hold.EscapeCut(why, 200))
}

// connectionError asks the connection why it does not stand. A request that fails fast gives the last
// reason; one that hangs says that somebody accepted the connection and does not answer.
func connectionError(cli *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := etcdserverpb.NewMaintenanceClient(cli.ActiveConnection()).Status(ctx, &etcdserverpb.StatusRequest{})
	if !unavailable(err) {
		return nil
	}
	return err
}

// plainReason is the innermost part of what gRPC says of a connection that did not come about.
func plainReason(err error) string {
	text := status.Convert(err).Message()
	for _, before := range []string{
		"authentication handshake failed: ", "error reading server preface: ", "client preface: ", "settings frame: ", "window update: ", "Error while dialing: ", `desc = "transport: `, `desc = "`, "desc = ",
	} {
		if at := strings.LastIndex(text, before); at >= 0 {
			text = text[at+len(before):]
			break
		}
	}
	return strings.TrimSuffix(text, `"`)
}

// Undecided reports whether err leaves open if etcd has done what it was asked to do.
func Undecided(err error) bool { return unavailable(err) || errors.Is(err, context.DeadlineExceeded) }

// unavailable reports whether err says that the request reached no member that could take it.
func unavailable(err error) bool { return code(err) == codes.Unavailable }

// code is the gRPC code of err, whether etcd's client has turned it into an error of its own or not.
func code(err error) codes.Code {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return known.Code()
	}
	var said interface{ GRPCStatus() *status.Status }
	if errors.As(err, &said) {
		return said.GRPCStatus().Code()
	}
	return codes.Unknown
}

// errNoSpace explains what etcd says when it is full.
var errNoSpace = errors.New("etcd is out of space: it keeps the holds there are and grants no new ones until " +
	"its alarm is cleared")

// ErrLogin is returned when etcd does not accept user and password. It does not say which of them is wrong.
var ErrLogin = errors.New("etcd does not know this user, or the password is wrong (it does not say which)")

// What else etcd says about users, in the words of who has to mend it.
var (
	errNoAuth = errors.New("a user was given, and this etcd has no users: authentication is not enabled there")
	errNoUser = errors.New("etcd wants to know who asks: give --user and --password-file, or a certificate that names a user")
)

// Classify gives an error that etcd returned the meaning it has for an exit code, by wrapping one of the
// errors of package hold. What it does not know stays as it is.
func Classify(err error) error {
	switch {
	case err == nil || hold.ExitCode(err) != hold.CodeUnreachable || errors.Is(err, hold.ErrUnreachable):
		return err
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: %w", hold.ErrUnreachable, errNoSpace)
	case errors.Is(err, rpctypes.ErrAuthFailed):
		return fmt.Errorf("%w: %s%w", hold.ErrUnreachable, whose(err), ErrLogin)
	case errors.Is(err, rpctypes.ErrAuthNotEnabled):
		return fmt.Errorf("%w: %s%w", hold.ErrUnreachable, whose(err), errNoAuth)
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return fmt.Errorf("%w: %w", hold.ErrPermission, errNoUser)
	case refused(err):
		return fmt.Errorf("%w: %w", hold.ErrPermission, err)
	}
	return err
}

// whose says whose login err is about, where it is about one.
func whose(err error) string {
	var failed *loginError
	if errors.As(err, &failed) {
		return "user " + Quote(failed.user) + ": "
	}
	return ""
}

// refused reports whether etcd refused for want of permission.
func refused(err error) bool {
	c := code(err)
	return c == codes.PermissionDenied || c == codes.Unauthenticated
}
