package faults

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

// A service is ready when it leads, and its manager knows why it is not; the watchdog is fed all the while.
func TestTheServiceManagerHearsHowThingsAre(t *testing.T) {
	o, m := newOffice(t, etcdtest.Shared(t).Endpoint()), run.NewManager(t)
	first := o.elect("meek", "--ttl", "60s")
	o.await("start", 1)
	env := []string{
		"CONCH_ENDPOINTS=" + etcdtest.Shared(t).Endpoint(), "NOTIFY_SOCKET=" + m.Socket,
		"WATCHDOG_USEC=200000", // beats every 100 ms
	}
	second := run.Start(t, env, "elect", o.name, "--ttl", "60s", "--restart", "--",
		"sh", "-c", `[ -z "$NOTIFY_SOCKET$WATCHDOG_USEC" ] || exit 9; [ -e "$1" ] && exec sleep 600; touch "$1"; exit 3`, "sh", filepath.Join(t.TempDir(), "again"))
	m.Until("STATUS=waiting in place 1, held by ")
	heard := m.Until("WATCHDOG=1")
	for _, text := range append(heard, m.Until("WATCHDOG=1")...) {
		if strings.Contains(text, "READY") {
			t.Errorf("ready while somebody else leads: %q", heard)
		}
	}
	first.Signal(syscall.SIGTERM)
	first.Wait()
	m.Until("READY=1\nSTATUS=leading " + o.name)
	m.Until("STATUS=pausing before the next campaign: exited 3")
	m.Until("WATCHDOG=1") // in the pause too
	m.Until("READY=1")
	second.Signal(syscall.SIGTERM)
	m.Until("STOPPING=1")
	if code := second.Wait(); code != 143 {
		t.Errorf("code %d; %s", code, second.Stderr())
	}
}
