package run

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Manager is what systemd is to a service: a socket that hears how things are.
type Manager struct {
	t    T
	conn *net.UnixConn
	// Socket is the value of NOTIFY_SOCKET.
	Socket string
}

// NewManager opens the socket, in a folder of its own: the path of a socket is short.
func NewManager(t T) *Manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &Manager{t, conn, path}
}

// Until hears messages until one holds want, and returns all of them.
func (m *Manager) Until(want string) (heard []string) {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
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
