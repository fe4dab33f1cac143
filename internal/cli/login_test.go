package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// addUser makes a user who may read and write below a prefix.
func addUser(t *testing.T, root *clientv3.Client, name, password, prefix string) {
	t.Helper()
	for _, step := range []func() error{
		func() error { _, err := root.UserAdd(t.Context(), name, password); return err },
		func() error { _, err := root.RoleAdd(t.Context(), name); return err },
		func() error {
			_, err := root.RoleGrantPermission(t.Context(), name, prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := root.UserGrantRole(t.Context(), name, name); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAUserIsKnownByItsPassword(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	addUser(t, server.EnableAuth(t), "me", "geheim", "/test")
	s := Settings{Endpoints: server.Endpoints(), DialTimeout: time.Minute, User: "me", Password: "geheim"}
	if err := ask(t.Context(), t, s); err != nil {
		t.Error(err)
	}
	for name, tt := range map[string]struct {
		user     string
		password Secret
		code     int
		want     string
	}{
		"wrong password": {"me", "falsch", hold.CodeUnreachable, `user "me": etcd does not know this user, or the password is wrong`},
		"unknown user":   {"you", "geheim", hold.CodeUnreachable, `user "you": etcd does not know this user, or the password is wrong`},
		"no user":        {"", "", hold.CodePermission, "give --user and --password-file"},
	} {
		s.User, s.Password = tt.user, tt.password
		err := ask(t.Context(), t, s)
		if hold.ExitCode(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v", name, err)
		}
		if strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "falsch") {
			t.Errorf("%s: %v tells the password", name, err)
		}
	}
}

func TestAUserOfAnEtcdWithoutUsersIsAMistake(t *testing.T) {
	t.Parallel()
	s := Settings{Endpoints: etcdtest.Shared(t).Endpoints(), DialTimeout: time.Minute, User: "me", Password: "geheim"}
	err := ask(t.Context(), t, s)
	if !errors.Is(err, hold.ErrUnreachable) || !strings.Contains(err.Error(), `user "me": a user was given, and this etcd has no users`) {
		t.Errorf("got %v", err)
	}
}

func TestAUserIsNotWaitedForBeyondItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := Settings{Endpoints: []string{etcdtest.Silent(t)}, DialTimeout: time.Hour, User: "me", Password: "geheim"}
	context.AfterFunc(ctx, func() {})
	cancel(why)
	if err := ask(ctx, t, s); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// TestATokenThatEndedIsReplaced: a change of any user ends all tokens in one way, a restart of the member in another.
func TestATokenThatEndedIsReplaced(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	root := server.EnableAuth(t)
	addUser(t, root, "me", "geheim", "/test")
	client, err := Settings{Endpoints: server.Endpoints(), DialTimeout: time.Minute, User: "me", Password: "geheim"}.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s := Settings{Endpoints: server.Endpoints(), DialTimeout: time.Minute}
	put := func() {
		t.Helper()
		if err := s.Reach(t.Context(), client, func(ctx context.Context) error {
			_, err := client.Put(ctx, "/test", "x")
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	put()
	for range 3 {
		if _, err := root.UserChangePassword(t.Context(), "root", etcdtest.RootPassword); err != nil {
			t.Fatal(err)
		}
		put()
		server.Stop()
		server.Start()
		put()

		// A stream begins with a token that is good, too.
		ctx, cancel := context.WithCancel(t.Context())
		stream := client.Watch(clientv3.WithRequireLeader(ctx), "/test", clientv3.WithCreatedNotify())
		if r := <-stream; r.Err() != nil || !r.Created {
			t.Errorf("got %+v", r)
		}
		cancel()
	}
}

func TestATokenThatIsRefusedForGoodIsGivenUp(t *testing.T) {
	t.Parallel()
	l := &login{user: "me"}
	if l.instead("a") != "" {
		t.Error("a token comes from nowhere")
	}
	l.token = "b"
	if l.instead("a") != "b" || l.instead("b") != "" {
		t.Error("the token that came in place of another is not found")
	}
	if !ended(rpctypes.ErrGRPCInvalidAuthToken) || !ended(rpctypes.ErrAuthOldRevision) || ended(rpctypes.ErrPermissionDenied) || ended(nil) {
		t.Error("what ends a token is not known")
	}
}

// TestALoginGoesOnForThoseWhoComeLater: who asked first had no time for it.
func TestALoginGoesOnForThoseWhoComeLater(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	addUser(t, server.EnableAuth(t), "me", "geheim", "/test")
	client, err := Settings{Endpoints: server.Endpoints(), DialTimeout: time.Minute}.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	l := &login{user: "me", password: "geheim"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if token, err := l.renew(ctx, client.ActiveConnection()); status.Code(err) != codes.Canceled && token == "" {
		t.Errorf("got %q, %v", token, err)
	}
	<-l.newest.done
	if token, since := l.last(); token == "" || since.IsZero() {
		t.Errorf("the login was given up: %v", l.newest.err)
	}
}

func TestALoginThatHangsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	server := etcdtest.Secure(t, etcdtest.SecureOptions{})
	addUser(t, server.EnableAuth(t), "me", "geheim", "/test")
	client, err := Settings{Endpoints: server.Endpoints(), DialTimeout: time.Minute}.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	l := &login{user: "me", password: "geheim", newest: &attempt{since: time.Now().Add(-2 * freshFor), done: make(chan struct{})}}
	if token, err := l.renew(t.Context(), client.ActiveConnection()); token == "" || err != nil {
		t.Errorf("got %q, %v", token, err)
	}
}
