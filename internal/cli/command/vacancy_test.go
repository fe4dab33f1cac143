package command

import (
	"context"
	"io"
	"os"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// Of several that see the same vacancy one steps in, and the others wait for the next one. Red when they queue.
func TestStandbysNeverQueue(t *testing.T) {
	t.Parallel()
	office, client := etcdtest.Office(t), etcdtest.Shared(t).Client(t)
	holder := lead(t, office, "holder")
	const standbys = 4
	var codes []<-chan int
	for range standbys {
		said, code := make(reader, 99), make(chan int, 1)
		go func() {
			code <- Main(context.Background(), cli.Env{
				Name: "conch", Args: []string{"elect", office, "--campaign-after", "50ms", "--", "true"}, Environ: at(t).environ,
				Stdout: io.Discard, Stderr: said, Signals: func() (<-chan os.Signal, func()) { return nil, func() {} },
			})
		}()
		contains(t, said.next(t), "waiting until the office is vacant")
		codes = append(codes, code)
	}
	if err := holder.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, code := range codes {
		if c := wait(t, code); c != 0 {
			t.Errorf("code %d", c)
		}
	}

	// Each came to an office in which nobody was.
	seated, seen := 0, 0
	for got := range client.Watch(t.Context(), hold.ElectRange(office), clientv3.WithPrefix(), clientv3.WithRev(1)) {
		for _, ev := range got.Events {
			if seen++; ev.Type == clientv3.EventTypeDelete {
				seated--
			} else {
				seated++
			}
			if seated > 1 {
				t.Fatal("a standby stands in the queue behind another")
			}
		}
		if seen == 2*(standbys+1) {
			return
		}
	}
}
