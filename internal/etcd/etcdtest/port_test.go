package etcdtest

import (
	"net"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is forked while a port is looked for has the socket of that look until its exec. Red when that one listens.
func TestAReservedPortIsFreeAlsoForWhoeverForksMeanwhile(t *testing.T) {
	t.Parallel()
	address := reserve(t)
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}

	// The child's copy of such a socket.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.CloseOnExec(fd)
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("a socket that does not listen keeps a listener away: %v", err)
	}
	defer l.Close()
	if bindable(port) {
		t.Error("a port counts as free although somebody listens there")
	}
}

func TestAMemberStartsAgainOnceItsPortIsLetGo(t *testing.T) {
	t.Parallel()
	s := One(t)
	s.Stop()
	l, err := net.Listen("tcp", s.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	let := time.AfterFunc(50*time.Millisecond, func() { l.Close() })
	defer let.Stop()
	s.Start()
	if _, err := s.Client(t).Get(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
}
