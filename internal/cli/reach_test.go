package cli

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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

// ask reaches etcd with a read.
func ask(ctx context.Context, t *testing.T, s Settings) error {
	t.Helper()
	cli, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cli.Close()
	return s.Reach(ctx, cli, func(ctx context.Context) error {
		_, err := cli.Get(ctx, "/test")
		return err
	})
}

func TestOneLiveEndpointAmongDeadOnesWorks(t *testing.T) {
	t.Parallel()
	live := etcdtest.Shared(t).Endpoint()
	s := Settings{Endpoints: []string{etcdtest.Refused(t), etcdtest.Silent(t), etcdtest.NotGRPC(t), live}, DialTimeout: time.Minute}
	if err := ask(t.Context(), t, s); err != nil {
		t.Error(err)
	}
}

func TestDeadEndpointsAreUnreachableAndSayWhy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		at   string
		want string
	}{
		"refused":      {etcdtest.Refused(t), "connection refused"},
		"black hole":   {etcdtest.Silent(t), "no answer"},
		"not gRPC":     {etcdtest.NotGRPC(t), ": "}, // that it was HTTP, or that the connection broke
		"no such host": {"host.invalid:1", "host.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Settings{Endpoints: []string{tt.at}, DialTimeout: 300 * time.Millisecond}
			err := ask(t.Context(), t, s)
			if hold.ExitCode(err) != hold.CodeUnreachable || !errors.Is(err, hold.ErrUnreachable) {
				t.Fatalf("got %v", err)
			}
			if text := OneLine(err); !strings.Contains(text, tt.want) || !strings.Contains(text, tt.at) || !strings.Contains(text, "300ms") {
				t.Errorf("%q does not say what and why (%q)", text, tt.want)
			}
		})
	}
}

func TestReachEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{"refused": etcdtest.Refused(t), "black hole": etcdtest.Silent(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			why := errors.New("changed my mind")
			ctx, cancel := context.WithCancelCause(t.Context())
			s := Settings{Endpoints: []string{at}, DialTimeout: time.Hour}
			cli, err := s.Client()
			if err != nil {
				t.Fatal(err)
			}
			defer cli.Close()
			err = s.Reach(ctx, cli, func(ctx context.Context) error {
				cancel(why)
				_, err := cli.Get(ctx, "/test")
				return err
			})
			if !errors.Is(err, why) {
				t.Errorf("got %v, want the cause of the context", err)
			}
		})
	}
}

func TestReachWaitsForEtcdToComeUp(t *testing.T) {
	t.Parallel()
	tries := 0
	s := Settings{Endpoints: []string{etcdtest.Refused(t)}, DialTimeout: time.Minute}
	cli, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cli.Close()
	err = s.Reach(t.Context(), cli, func(context.Context) error {
		if tries++; tries < 3 {
			return status.Error(codes.Unavailable, "not yet")
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("got %v after %d tries", err, tries)
	}
	if err := s.Reach(t.Context(), cli, func(context.Context) error { return rpctypes.ErrPermissionDenied }); !errors.Is(err, hold.ErrPermission) {
		t.Errorf("got %v, want a refusal at once", err)
	}
}

func TestRefusalsOfEtcdHaveTheirExitCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		code int
	}{
		{nil, 0},
		{rpctypes.ErrPermissionDenied, hold.CodePermission},
		{rpctypes.ErrGRPCPermissionDenied, hold.CodePermission},
		{rpctypes.ErrUserEmpty, hold.CodePermission},
		{rpctypes.ErrAuthFailed, hold.CodeUnreachable},
		{rpctypes.ErrAuthNotEnabled, hold.CodeUnreachable},
		{&loginError{"me", rpctypes.ErrAuthFailed}, hold.CodeUnreachable},
		{rpctypes.ErrInvalidAuthToken, hold.CodePermission},
		{fmt.Errorf("grant lease: %w", rpctypes.ErrPermissionDenied), hold.CodePermission},
		{rpctypes.ErrNoSpace, hold.CodeUnreachable},
		{rpctypes.ErrLeaseNotFound, hold.CodeUnreachable},
		{errors.New("odd"), hold.CodeUnreachable},
		{hold.ErrNotAcquired, hold.CodeNotAcquired},
	} {
		if got := hold.ExitCode(Classify(tt.err)); got != tt.code {
			t.Errorf("Classify(%v) means %d, want %d", tt.err, got, tt.code)
		}
	}
	if text := Classify(rpctypes.ErrNoSpace).Error(); !strings.Contains(text, "out of space") {
		t.Errorf("%q does not explain", text)
	}
}

func TestSettingsSurviveTheirWayToAnotherProcess(t *testing.T) {
	t.Parallel()
	for _, s := range []Settings{
		{Endpoints: []string{"a:1", "https://b:2"}, DialTimeout: 7 * time.Second},
		{Endpoints: []string{"a:1"}, DialTimeout: 1, User: "me", Password: "geheim", TLS: TLS{true, []byte("a"), []byte("b"), "c", true}},
	} {
		got, err := DecodeSettings(s.Encode())
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("got %v, %v", got, err)
		}
	}
	for _, bad := range []string{"", "null", "{}", `{"endpoints":["a:1"]}`, "[]"} {
		if got, err := DecodeSettings([]byte(bad)); err == nil {
			t.Errorf("DecodeSettings(%q) = %v", bad, got)
		}
	}
}

func TestAClientNeedsAnEndpoint(t *testing.T) {
	t.Parallel()
	if _, err := (Settings{}).Client(); !errors.Is(err, clientv3.ErrNoAvailableEndpoints) {
		t.Errorf("got %v", err)
	}
}

func TestWhatMayHaveBeenDone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{status.Error(codes.Unavailable, "reset"), true},
		{rpctypes.ErrTimeout, true},
		{fmt.Errorf("put: %w", context.DeadlineExceeded), true},
		{rpctypes.ErrNoSpace, false},
		{rpctypes.ErrPermissionDenied, false},
	} {
		if got := Undecided(tt.err); got != tt.want {
			t.Errorf("%v: %v", tt.err, got)
		}
	}
}
