package compat

import (
	"context"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
)

// The published constants are untyped where they were, so that they fit the fields they are for.
const (
	hostsPrefix     string        = coord.HostsPrefix
	leaseTTL        int64         = coord.DefaultLeaseTTLSec
	refreshInterval time.Duration = coord.DefaultRefreshInterval
)

// register is the first example of the concepts page.
func register(ctx context.Context, cli *clientv3.Client) (*coord.HostLiveness, error) {
	return coord.RegisterHostLiveness(ctx, cli, coord.HostMetadata{
		HostUUID: "host-uuid-1", Hostname: "dc1-h1", Hypervisor: "qemu",
	}, coord.LivenessOptions{LeaseTTLSec: 10})
}

// registerInFull names every field.
func registerInFull(ctx context.Context, cli *clientv3.Client, log *slog.Logger, started int64) (*coord.HostLiveness, error) {
	o := coord.LivenessOptions{Prefix: "/agents/", LeaseTTLSec: leaseTTL, Refresh: refreshInterval, Logger: log}
	m := coord.HostMetadata{HostUUID: "h2", Hostname: "dc1-h2", Hypervisor: "qemu", Version: "1.4.2", StartedAt: started}
	return coord.RegisterHostLiveness(ctx, cli, m, o)
}

// about is what a handle tells.
func about(hl *coord.HostLiveness) (lease clientv3.LeaseID, key string) {
	return hl.LeaseID(), hl.Key()
}

// stop ends a registration.
func stop(ctx context.Context, hl *coord.HostLiveness) error { return hl.Stop(ctx) }
