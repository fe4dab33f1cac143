package embed

import (
	"context"
	"fmt"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// Probe returns nil when something that speaks etcd's protocol answers at endpoint, be it with a refusal.
// A peer that refuses the connection gives an error at once; one that accepts and says nothing, or speaks
// something else, when ctx ends at the latest. The endpoint is taken without TLS.
func Probe(ctx context.Context, endpoint string) error {
	conn, err := dial(endpoint)
	if err != nil {
		return fmt.Errorf("probe %s: %w", endpoint, err)
	}
	defer conn.Close()

	// Status is answered by a member without a leader too, and needs no permission.
	_, err = pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
	switch status.Code(err) {
	case codes.OK, codes.Unauthenticated, codes.PermissionDenied, codes.FailedPrecondition:
		return nil
	default:
		return fmt.Errorf("probe %s: %w", endpoint, err)
	}
}

// Answers reports whether Probe succeeds at one of the endpoints. All are asked at the same time.
func Answers(ctx context.Context, endpoints []string) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(endpoints))
	for _, endpoint := range endpoints {
		go func() { results <- Probe(ctx, endpoint) }()
	}
	answered := false
	for range endpoints {
		if <-results == nil {
			// The others are no longer of interest; they end at once.
			answered = true
			cancel()
		}
	}
	return answered
}

// dial prepares a connection; it does not wait for it. One that is made stays open although nothing is
// asked over it.
func dial(endpoint string) (*grpc.ClientConn, error) {
	target := strings.TrimPrefix(endpoint, "http://")
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		target = "unix:/" + strings.TrimLeft(path, "/")
	}
	return grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithIdleTimeout(0))
}
