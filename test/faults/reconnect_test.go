package faults

import (
	"net"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cli"
)

// An endpoint that is away is tried again soon, however long it has been away: with gRPC's own pauses the tenth attempt
// comes after two minutes, and a hold would be lost though etcd is back. Red when Settings.Client leaves them to gRPC.
func TestAnEndpointThatIsAwayIsTriedAgainSoon(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	attempts := make(chan struct{})
	go func() {
		defer close(attempts)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
			attempts <- struct{}{}
		}
	}()
	client, err := cli.Settings{Endpoints: []string{l.Addr().String()}, DialTimeout: time.Second}.Client()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 10 {
		<-attempts
	}
	took := time.Since(began)
	client.Close()
	l.Close()
	for range attempts {
	}
	if took > 10*time.Second+slack {
		t.Errorf("ten attempts took %v", took)
	} else {
		t.Logf("ten attempts took %v", took)
	}
}
