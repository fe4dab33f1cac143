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
	v := hostOf(h.Metadata, h.Incarnation, now)
	v.Lease = int64(h.Lease)
	if h.Stopping {
		v.State = view.Stopping
	}
	return v
}

// HostOfEvent is the host that an event is about; what its key is on is not told.
func HostOfEvent(ev coord.HostEvent, now time.Time) view.Host {
	v := hostOf(ev.Metadata, ev.Incarnation, now)
	if ev.Kind == coord.HostDown {
		v.State = view.Down
	}
	return v
}

func hostOf(m coord.HostMetadata, rev int64, now time.Time) view.Host {
	v := view.Host{State: view.Up, UUID: m.HostUUID, Hostname: m.Hostname, Version: m.Version, Rev: rev, Left: view.Unknown}
	if began := time.Unix(0, m.StartedAt).UTC(); m.StartedAt > 0 && !began.After(now) {
		v.Since = began
	}
	return v
}
