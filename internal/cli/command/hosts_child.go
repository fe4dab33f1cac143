package command

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/supervise"
)

// alongside runs argv while the host is proven to be registered.
func (c *call) alongside(ctx context.Context, f *registerFlags, m coord.HostMetadata, argv []string) (int, error) {
	file, err := c.find(ctx, &f.Connection, f.statusFile, argv[0])
	if err != nil {
		return 0, err
	}
	signals, stop := c.env.Signals()
	defer stop()
	log := cli.NewLogger(c.env.Stderr, f.Quiet, f.LogFormat)
	manager := cli.NewNotifier(c.env)
	defer manager.Close()
	acquire := func(client *clientv3.Client) acquirer {
		return &presence{flags: f, client: client, metadata: m, log: log}
	}
	out := c.under(ctx, acquire, f.Settings, f.childFlags, supervise.Config{
		Kind: hold.KindHost, Name: m.HostUUID, Path: file, Argv: argv,
		Started: func(int, time.Duration) { manager.Ready("registered as " + m.HostUUID) },
		Logger:  log,
	}, signals, manager)
	c.writeStatus(f.Connection, f.statusFile, out.Status)
	c.interrupted(out.Interrupted)
	return out.Status.Code, c.failure(out)
}

// presence registers a host: it is the hold.Acquirer of "conch hosts register -- CMD". What it holds is one proof of one
// registration. Nothing is healed: whoever runs under it has to be gone when the proof ends, and a key that came back
// meanwhile would say that it is there.
type presence struct {
	flags    *registerFlags
	client   *clientv3.Client
	metadata coord.HostMetadata
	log      *slog.Logger
}

// Acquire waits without a key: there is nothing to place.
func (p *presence) Acquire(ctx context.Context, _ func([]byte)) (hold.Hold, error) {
	o := p.flags.options(p.log)
	o.NoHeal = true
	host, err := p.flags.registration(ctx, p.client, p.metadata, o)
	if err != nil {
		return nil, err
	}
	proof, err := host.Proven(ctx)
	if err != nil {
		_ = host.Stop(ctx)
		return nil, err
	}
	keys := proof.Keys()
	return &present{host: host, proof: proof, client: p.client, info: hold.Info{
		Kind: hold.KindHost, Name: p.metadata.HostUUID, Rev: uint64(keys.Rev), Lease: int64(keys.Lease),
		Slot: -1, TTL: proof.Bounds().TTL,
	}}, nil
}

// close leaves to its TTL what was not released: something of the child may live.
func (p *presence) close(supervise.Outcome) { _ = p.client.Close() }

// present is a proof of coord as a hold.Hold.
type present struct {
	host   *coord.HostLiveness
	proof  *coord.Proof
	client *clientv3.Client
	info   hold.Info
}

func (p *present) Info() hold.Info { return p.info }

func (p *present) Deadlines() hold.Deadlines {
	term, kill := p.proof.Deadlines()
	return hold.Deadlines{Term: term, Kill: kill}
}

func (p *present) Renewed() <-chan struct{} { return p.proof.Renewed() }
func (p *present) Lost() <-chan struct{}    { return p.proof.Lost() }
func (p *present) Evicted() <-chan error    { return nil } // nobody can ask a host to leave

func (p *present) Cause() error {
	if cause := context.Cause(p.proof.Context()); cause != nil {
		return fmt.Errorf("%w: %w", hold.ErrLost, cause)
	}
	return nil
}

// Release says that the host stops, and revokes the lease. What went wrong is tried again with less: the key is deleted.
func (p *present) Release(ctx context.Context, end hold.End) error {
	if err := p.host.Stop(ctx); err == nil {
		return nil
	}
	return p.proof.Keys().Release(ctx, p.client, coord.End(end))
}

func (p *present) Testament() []byte {
	raw, _ := json.Marshal(p.proof.Keys()) // of these types it cannot fail
	return raw
}
