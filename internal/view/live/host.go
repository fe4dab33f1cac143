package live

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/view"
)

// Hosts reads which hosts are up, linearizably, in order. It takes permission to read coord.HostsPrefix.
func Hosts(ctx context.Context, client *clientv3.Client) ([]view.Host, error) {
	seen, err := coord.ListHosts(ctx, client, "")
	if err != nil {
		return nil, err
	}
	var all []view.Host
	for _, h := range seen.Hosts {
		all = append(all, HostOf(h, time.Now()))
	}
	return all, nil
}

// HostOf is a host, as the view has it.
func HostOf(h coord.Host, now time.Time) view.Host {
	v := view.Host{
		State: view.Up, UUID: h.Metadata.HostUUID, Hostname: h.Metadata.Hostname, Version: h.Metadata.Version,
		Rev: h.Incarnation, Lease: int64(h.Lease), Left: view.Unknown,
	}
	if h.Stopping {
		v.State = view.Stopping
	}
	if began := time.Unix(0, h.Metadata.StartedAt).UTC(); h.Metadata.StartedAt > 0 && !began.After(now) {
		v.Since = began
	}
	return v
}
