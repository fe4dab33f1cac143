package compat

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// stored reads a host's key as the published JSON.
func stored(t *testing.T, cli *clientv3.Client, key string) (lease clientv3.LeaseID, fields map[string]any) {
	t.Helper()
	got, err := cli.Get(t.Context(), key)
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("%s: %v, %v", key, got, err)
	}
	if err := json.Unmarshal(got.Kvs[0].Value, &fields); err != nil {
		t.Fatal(err)
	}
	return clientv3.LeaseID(got.Kvs[0].Lease), fields
}

func TestAnAgentOfThePublishedModuleRegisters(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Cluster(t, 1).Client(t)
	bounded, cancel := context.WithCancel(t.Context())
	hl, err := register(bounded, cli)
	if err != nil {
		t.Fatal(err)
	}
	cancel() // it bounds the call, not the registration
	lease, key := about(hl)
	if hostsPrefix != "/coord/hosts/" || key != "/coord/hosts/host-uuid-1" {
		t.Error(key)
	}
	on, fields := stored(t, cli, key)
	if on != lease || fields["host_uuid"] != "host-uuid-1" || fields["hostname"] != "dc1-h1" || fields["hypervisor"] != "qemu" || fields["version"] != "" {
		t.Errorf("lease %x, want %x; %v", on, lease, fields)
	}
	if at, ok := fields["started_at_unix_ns"].(float64); !ok || time.Since(time.Unix(0, int64(at))) > time.Hour {
		t.Errorf("%v", fields)
	}
	left, err := cli.TimeToLive(t.Context(), lease)
	if err != nil || left.GrantedTTL != 10 {
		t.Errorf("%v %v", left, err)
	}
	if err := stop(t.Context(), hl); err != nil {
		t.Error(err)
	}
	if left, err := cli.TimeToLive(t.Context(), lease); err != nil || left.TTL != -1 {
		t.Errorf("the lease was not revoked: %v %v", left, err)
	}

	hl, err = registerInFull(t.Context(), cli, nil, 7)
	if err != nil {
		t.Fatal(err)
	}
	if _, fields := stored(t, cli, "/agents/h2"); fields["version"] != "1.4.2" || fields["started_at_unix_ns"] != 7.0 {
		t.Errorf("%v", fields)
	}
	if err := stop(t.Context(), hl); err != nil {
		t.Error(err)
	}
}

// The zero options are usable, and a metadata without a UUID is refused.
func TestTheZeroOptionsRegister(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Cluster(t, 1).Client(t)
	hl, err := coord.RegisterHostLiveness(t.Context(), cli, coord.HostMetadata{HostUUID: "h1"}, coord.LivenessOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer hl.Stop(t.Context())
	if _, err := coord.RegisterHostLiveness(t.Context(), cli, coord.HostMetadata{}, coord.LivenessOptions{}); err == nil {
		t.Error("a host without a UUID was registered")
	}
}
