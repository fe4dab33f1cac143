package faults

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

// manager is what systemd is to a service: a socket that hears how things are.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
	path string
}

func newManager(t *testing.T) *manager {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &manager{t, conn, path}
}

// until hears messages until one holds want, and returns all of them.
func (m *manager) until(want string) (heard []string) {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		m.t.Fatal(err)
	}
	for buf := make([]byte, 4096); ; {
		n, err := m.conn.Read(buf)
		if err != nil {
			m.t.Fatalf("no %q after %q: %v", want, heard, err)
		}
		heard = append(heard, string(buf[:n]))
		if strings.Contains(string(buf[:n]), want) {
			return heard
		}
	}
}

// A service is ready when it leads, and its manager knows why it is not; the watchdog is fed all the while.
func TestTheServiceManagerHearsHowThingsAre(t *testing.T) {
	o, m := newOffice(t, etcdtest.Shared(t).Endpoint()), newManager(t)
	first := o.elect("meek", "--ttl", "60s")
	o.await("start", 1)
	env := []string{
		"CONCH_ENDPOINTS=" + etcdtest.Shared(t).Endpoint(), "NOTIFY_SOCKET=" + m.path,
		"WATCHDOG_USEC=200000", // beats every 100 ms
	}
	second := run.Start(t, env, "elect", o.name, "--ttl", "60s", "--restart", "--",
		"sh", "-c", `[ -z "$NOTIFY_SOCKET$WATCHDOG_USEC" ] || exit 9; [ -e "$1" ] && exec sleep 600; touch "$1"; exit 3`, "sh", filepath.Join(t.TempDir(), "again"))
	m.until("STATUS=waiting in place 1, held by ")
	heard := m.until("WATCHDOG=1")
	for _, text := range append(heard, m.until("WATCHDOG=1")...) {
		if strings.Contains(text, "READY") {
			t.Errorf("ready while somebody else leads: %q", heard)
		}
	}
	first.Signal(syscall.SIGTERM)
	first.Wait()
	m.until("READY=1\nSTATUS=leading " + o.name)
	m.until("STATUS=pausing before the next campaign: exited 3")
	m.until("WATCHDOG=1") // in the pause too
	m.until("READY=1")
	second.Signal(syscall.SIGTERM)
	m.until("STOPPING=1")
	if code := second.Wait(); code != 143 {
		t.Errorf("code %d; %s", code, second.Stderr())
	}
}
