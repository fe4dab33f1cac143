package coordtest

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestConformance tells every story to the medium and to a real etcd and compares what they answer.
func TestConformance(t *testing.T) {
	t.Parallel()
	etcd := startEtcd(t)
	// The floor of TTLs follows from the election timeout, which is short here.
	m := Start(t, Options{MinTTL: time.Second})
	medium := narrator{cli: m.Client(t), noSpace: m.NoSpace}
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			want := etcd.tell(t, s)
			got := medium.tell(t, s)
			if len(want) == 0 {
				t.Fatal("the story says nothing")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("etcd (-) and the medium (+) differ:\n%s", diff)
			}
		})
	}
}

// narrator is one of the two that are compared.
type narrator struct {
	cli     *clientv3.Client
	noSpace func(bool)
}

// startEtcd runs an embedded etcd with one member, as fast and as quiet as it can be.
func startEtcd(t *testing.T) narrator {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir = t.TempDir()
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.ListenPeerUrls = anyPort, anyPort
	cfg.AdvertiseClientUrls, cfg.AdvertisePeerUrls = anyPort, anyPort
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs, cfg.ElectionMs, cfg.UnsafeNoFsync = 10, 100, true
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Clients[0].Addr().String()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cli.Close() })
	alarm := pb.NewMaintenanceClient(cli.ActiveConnection())
	return narrator{cli: cli, noSpace: func(on bool) {
		r := &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: uint64(e.Server.MemberID())}
		if on {
			r.Action = pb.AlarmRequest_ACTIVATE
		}
		if _, err := alarm.Alarm(context.Background(), r); err != nil {
			t.Errorf("alarm: %v", err)
		}
	}}
}

// story is a sequence of requests.
type story struct {
	name string
	tell func(*teller)
}

// teller makes the requests of one story and writes down the answers, with revisions counted from the
// start of the story, leases numbered, and ids and terms reduced to whether they are there.
type teller struct {
	t       *testing.T
	ctx     context.Context
	cli     *clientv3.Client
	kv      pb.KVClient
	lease   pb.LeaseClient
	noSpace func(bool)
	base    int64
	leases  []int64
	lines   []string
}

// tell starts from an empty store.
func (n narrator) tell(t *testing.T, s story) []string {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, l := range must(n.cli.Leases(ctx)).Leases {
		must(n.cli.Revoke(ctx, l.ID))
	}
	// One key is deleted at least, so that the story starts at a revision of its own.
	must(n.cli.Put(ctx, "start", ""))
	base := must(n.cli.Delete(ctx, "\x00", clientv3.WithFromKey())).Header.Revision
	te := &teller{t: t, ctx: ctx, cli: n.cli, noSpace: n.noSpace, base: base}
	te.kv = pb.NewKVClient(n.cli.ActiveConnection())
	te.lease = pb.NewLeaseClient(n.cli.ActiveConnection())
	s.tell(te)
	return te.lines
}

// must is for what cannot fail unless the test itself is broken.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// note writes down an answer.
func (te *teller) note(what string, m proto.Message, err error) {
	line := what + ": "
	if err != nil {
		st := status.Convert(err)
		line += fmt.Sprintf("%v %q", st.Code(), st.Message())
	} else {
		m = proto.Clone(m)
		te.normalise(m.ProtoReflect())
		line += prototext.MarshalOptions{}.Format(m)
	}
	te.lines = append(te.lines, line)
}

// normalise rewrites the fields that differ between two clusters.
func (te *teller) normalise(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch name := string(f.Name()); {
		case slices.Contains([]string{"cluster_id", "member_id", "raft_term"}, name):
			m.Set(f, protoreflect.ValueOfUint64(1)) // Range yields only fields that are set
		case strings.HasSuffix(name, "revision"):
			m.Set(f, protoreflect.ValueOfInt64(v.Int()-te.base))
		case name == "lease" || name == "ID":
			m.Set(f, protoreflect.ValueOfInt64(te.number(v.Int())))
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				te.normalise(v.List().Get(i).Message())
			}
		case f.Message() != nil:
			te.normalise(v.Message())
		}
		return true
	})
}

// number gives leases the numbers 1, 2, ... in the order in which they come up.
func (te *teller) number(id int64) int64 {
	if !slices.Contains(te.leases, id) {
		te.leases = append(te.leases, id)
	}
	return int64(slices.Index(te.leases, id)) + 1
}

func (te *teller) get(r *pb.RangeRequest) {
	if r.Revision > 0 {
		r.Revision += te.base
	}
	for _, rev := range []*int64{&r.MinModRevision, &r.MaxModRevision, &r.MinCreateRevision, &r.MaxCreateRevision} {
		if *rev > 0 {
			*rev += te.base
		}
	}
	resp, err := te.kv.Range(te.ctx, r)
	te.note("range", resp, err)
}

// all shows everything that is there.
func (te *teller) all() { te.get(&pb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}}) }

func (te *teller) put(r *pb.PutRequest) {
	resp, err := te.kv.Put(te.ctx, r)
	te.note("put", resp, err)
}

// puts puts keys with values like "k=v".
func (te *teller) puts(pairs ...string) {
	for _, p := range pairs {
		k, v, _ := strings.Cut(p, "=")
		te.put(&pb.PutRequest{Key: []byte(k), Value: []byte(v)})
	}
}

func (te *teller) del(r *pb.DeleteRangeRequest) {
	resp, err := te.kv.DeleteRange(te.ctx, r)
	te.note("delete", resp, err)
}

func (te *teller) txn(what string, r *pb.TxnRequest) {
	resp, err := te.kv.Txn(te.ctx, r)
	te.note("txn "+what, resp, err)
}

func (te *teller) compact(rev int64) {
	resp, err := te.kv.Compact(te.ctx, &pb.CompactionRequest{Revision: te.base + rev})
	te.note("compact", resp, err)
}

func (te *teller) grant(id, ttl int64) int64 {
	resp, err := te.lease.LeaseGrant(te.ctx, &pb.LeaseGrantRequest{ID: id, TTL: ttl})
	te.note("grant", resp, err)
	return resp.GetID()
}

func (te *teller) revoke(id int64) {
	resp, err := te.lease.LeaseRevoke(te.ctx, &pb.LeaseRevokeRequest{ID: id})
	te.note("revoke", resp, err)
}

func (te *teller) timeToLive(id int64) {
	resp, err := te.lease.LeaseTimeToLive(te.ctx, &pb.LeaseTimeToLiveRequest{ID: id, Keys: true})
	if resp != nil {
		slices.SortFunc(resp.Keys, slices.Compare[[]byte]) // etcd keeps them in a map
	}
	te.note("time to live", resp, err)
}

func (te *teller) listLeases() {
	resp, err := te.lease.LeaseLeases(te.ctx, &pb.LeaseLeasesRequest{})
	te.note("leases", resp, err)
}

// renew sends renewals on one stream and notes the replies.
func (te *teller) renew(ids ...int64) {
	ctx, cancel := context.WithCancel(te.ctx)
	defer cancel()
	stream := must(te.lease.LeaseKeepAlive(ctx))
	for _, id := range ids {
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: id}); err != nil {
			te.t.Errorf("send renewal: %v", err)
		}
		resp, err := stream.Recv()
		te.note("renewal", resp, err)
	}
}

// watching is a stream of watches.
type watching struct {
	te     *teller
	stream pb.Watch_WatchClient
	cancel context.CancelFunc
}

func (te *teller) watch() *watching {
	ctx, cancel := context.WithCancel(te.ctx)
	return &watching{te, must(pb.NewWatchClient(te.cli.ActiveConnection()).Watch(ctx)), cancel}
}

func (w *watching) send(r *pb.WatchRequest) {
	if err := w.stream.Send(r); err != nil {
		w.te.t.Errorf("send to watch: %v", err)
	}
}

// create asks for a watch; start counts from the start of the story, except that 0 is now.
func (w *watching) create(r *pb.WatchCreateRequest) {
	if r.StartRevision > 0 {
		r.StartRevision += w.te.base
	}
	w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}})
}

func (w *watching) cancelWatch(id int64) {
	w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}})
}

func (w *watching) progress() {
	w.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
}

// hears notes the next n responses.
func (w *watching) hears(n int) {
	for range n {
		resp, err := w.stream.Recv()
		w.te.note("watch", resp, err)
	}
}

// hearsOf notes responses until one speaks of a key.
func (w *watching) hearsOf(key string) {
	for {
		resp, err := w.stream.Recv()
		w.te.note("watch", resp, err)
		if err != nil || slices.ContainsFunc(resp.Events, func(e *mvccpb.Event) bool { return string(e.Kv.Key) == key }) {
			return
		}
	}
}
