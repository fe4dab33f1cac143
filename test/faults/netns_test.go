package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-coord/coord/test/run"
)

// network is two network namespaces with a cable between them, and nothing else: etcd is at home, and whoever is to be cut
// off is away. They live and end with the test, and touch no other network of this machine. Who is not root is made
// root of a user namespace for it.
type network struct {
	t    *testing.T
	home namespace
	away namespace
}

// The ends of the cable. What listens at home does so in no other network: the numbers cannot be taken.
const (
	homeAddress = "10.77.0.1"
	awayAddress = "10.77.0.2"
)

func newNetwork(t *testing.T) *network {
	t.Helper()
	unshare := []string{program(t, "unshare", "util-linux"), "--net"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--user", "--map-root-user")
	}
	n := &network{t: t}
	n.home = newNamespace(t, unshare)
	n.away = newNamespace(t, n.home.enter("unshare", "--net"))
	n.home.do(t, "ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", strconv.Itoa(n.away.pid))
	for ns, address := range map[namespace]string{n.home: homeAddress, n.away: awayAddress} {
		ns.do(t, "ip", "link", "set", "lo", "up")
		ns.do(t, "ip", "address", "add", address+"/24", "dev", "cable")
		ns.do(t, "ip", "link", "set", "cable", "up")
	}
	return n
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
	p := n.home.start(n.t, nil, etcd, "--data-dir", n.t.TempDir(), "--unsafe-no-fsync",
		"--listen-client-urls", urls, "--advertise-client-urls", urls,
		"--listen-peer-urls", "http://127.0.0.1:2380")
	p.WaitLog("ready to serve client requests")
	return endpoints
}

// filter has the packets away meet a rule, as they come in, go out, or both.
func (n *network) filter(in, out string) {
	n.t.Helper()
	rules := "flush ruleset\ntable inet test {\n" +
		"chain in { type filter hook input priority 0; " + in + "; }\n" +
		"chain out { type filter hook output priority 0; " + out + "; }\n}\n"
	file := filepath.Join(n.t.TempDir(), "rules")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		n.t.Fatal(err)
	}
	program(n.t, "nft", "nftables")
	n.away.do(n.t, "nft", "-f", file)
}

// hits is how many packets have met the rules that count.
func (n *network) hits() (hits int) {
	n.t.Helper()
	_, rest, found := strings.Cut(n.away.do(n.t, "nft", "list", "ruleset"), "counter packets ")
	for found {
		word, more, _ := strings.Cut(rest, " ")
		count, err := strconv.Atoi(word)
		if err != nil {
			n.t.Fatal(err)
		}
		hits += count
		_, rest, found = strings.Cut(more, "counter packets ")
	}
	return hits
}

// namespace is a network namespace, kept by a process that sleeps in it.
type namespace struct{ pid int }

// newNamespace starts the keeper with a command that makes the namespace.
func newNamespace(t *testing.T, unshare []string) namespace {
	t.Helper()
	keeper := run.StartWith(t, run.Options{Path: unshare[0], Args: append(unshare[1:], "sh", "-c", "echo up; exec sleep infinity")})
	keeper.WaitOut("up")
	return namespace{keeper.Pid()}
}

// enter is a command that runs another one in there, as the same process.
func (ns namespace) enter(command ...string) []string {
	enter := []string{"nsenter", "--target", strconv.Itoa(ns.pid), "--net"}
	if os.Getuid() != 0 {
		enter = append(enter, "--user", "--preserve-credentials")
	}
	return append(enter, command...)
}

// do runs a command in there to its end, and returns what it says.
func (ns namespace) do(t *testing.T, command ...string) string {
	t.Helper()
	argv := ns.enter(command...)
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, out)
	}
	return string(out)
}

// start starts a program in there.
func (ns namespace) start(t *testing.T, env []string, command ...string) *run.Process {
	t.Helper()
	argv := ns.enter(command...)
	return run.StartWith(t, run.Options{Path: argv[0], Args: argv[1:], Env: env})
}

// program finds a program, or says what to install.
func program(t *testing.T, name, from string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: install %s", err, from)
	}
	return path
}
