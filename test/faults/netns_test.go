package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-coord/coord/test/netns"
	"github.com/go-coord/coord/test/run"
)

// network is two network namespaces with a cable between them, and nothing else: etcd is at home, and whoever is to be cut
// off is away. They live and end with the test, and touch no other network of this machine. Who is not root is made
// root of a user namespace for it.
type network struct {
	t    *testing.T
	home *netns.Namespace
	away *netns.Namespace
	link netns.Link // away
}

// The ends of the cable. What listens at home does so in no other network: the numbers cannot be taken.
const (
	homeAddress = "10.77.0.1"
	awayAddress = "10.77.0.2"
)

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t}
	n.home = n.namespace(netns.Here())
	n.away = n.namespace(n.home)
	n.link = netns.Link{In: n.away, Name: "cable", Address: awayAddress + "/24"}
	n.must(netns.Cable(netns.Link{In: n.home, Name: "cable", Address: homeAddress + "/24"}, n.link))
	return n
}

func (n *network) namespace(from *netns.Namespace) *netns.Namespace {
	n.t.Helper()
	ns, err := netns.New(from)
	n.must(err)
	n.t.Cleanup(ns.Close)
	return ns
}

func (n *network) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// etcd starts a member at home that serves at two endpoints, and returns these.
func (n *network) etcd() []string {
	n.t.Helper()
	etcd, err := filepath.Abs("../../bin/etcd")
	if err == nil {
		_, err = os.Stat(etcd)
	}
	if err != nil {
		n.t.Fatalf("%v: make tools builds it", err)
	}
	endpoints := []string{homeAddress + ":2379", homeAddress + ":2378"}
	urls := "http://" + strings.Join(endpoints, ",http://")
	p := start(n.t, n.home, nil, etcd, "--data-dir", n.t.TempDir(), "--unsafe-no-fsync",
		"--listen-client-urls", urls, "--advertise-client-urls", urls,
		"--listen-peer-urls", "http://127.0.0.1:2380")
	p.WaitLog("ready to serve client requests")
	return endpoints
}

// filterName is that of the one filter away.
const filterName = "test"

// filter has the packets away meet a rule, as they come in, go out, or both.
func (n *network) filter(in, out string) {
	n.t.Helper()
	n.must(n.away.Filter(filterName, in, out))
}

// hits is how many packets have met the rules that count.
func (n *network) hits() int {
	n.t.Helper()
	hits, err := n.away.Hits(filterName)
	n.must(err)
	return hits
}

// start starts a program in a namespace.
func start(t *testing.T, ns *netns.Namespace, env []string, command ...string) *run.Process {
	t.Helper()
	argv := ns.Enter(command...)
	return run.StartWith(t, run.Options{Path: argv[0], Args: argv[1:], Env: env})
}
