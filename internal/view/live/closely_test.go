package live

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordtest"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/view"
)

// followClosely tells each standing: the seats, and behind that which of them has opened its record.
func followClosely(t *testing.T, client *clientv3.Client, n view.Name) *following {
	t.Helper()
	return startFollowing(t, FollowOptions{Closely: true}, func(ctx context.Context, o FollowOptions, say func(...string)) error {
		return Follow(ctx, client, n, o, func(_ []view.Seat, is view.Standing) error {
			words := []string{}
			for _, seat := range is.Seats {
				word := seatWords(seat)
				if seat.Opened {
					word += " opened"
				}
				words = append(words, word)
			}
			say(strings.Join(words, ", "))
			return nil
		})
	})
}

// Red when a record that comes without a word in the queue is not looked for.
func TestWhoBeginsIsToldOfByWhoLooksClosely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := coordtest.Start(t, coordtest.Options{})
		client := m.Client(t)
		office := view.Name{Kind: hold.KindElect, Name: "o"}
		openKey, lastKey := hold.OfficeKeys("o")
		p := &pen{t: t, client: client, name: office}
		a, aRecord := p.comes("a")
		p.put(openKey.String(), aRecord)
		b, bRecord := p.comes("b")
		c, cRecord := p.comes("c")
		f := followClosely(t, client, office)
		f.tells(t, "held a opened, waiting b, waiting c")

		// The next is first, and begins later.
		p.do(clientv3.OpDelete(a), clientv3.OpDelete(openKey.String()), clientv3.OpPut(lastKey.String(), "{}"))
		f.tells(t, "held b, waiting c")
		time.Sleep(time.Second)
		p.put(openKey.String(), bRecord)
		f.tells(t, "held b opened, waiting c")

		// One that begins and ends before anything is heard has begun all the same.
		p.do(clientv3.OpDelete(b), clientv3.OpDelete(openKey.String()), clientv3.OpPut(lastKey.String(), "{}"))
		f.tells(t, "held c")
		synctest.Wait()
		m.HoldWatches(true)
		p.put(openKey.String(), cRecord)
		p.do(clientv3.OpDelete(c), clientv3.OpDelete(openKey.String()), clientv3.OpPut(lastKey.String(), "{}"))
		m.HoldWatches(false)
		f.tells(t, "held c opened", "")
	})
}

// Red when nothing is told where nobody's hold has changed.
func TestWhoGoesFromTheQueueIsToldOfToWhoLooksClosely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := coordtest.Start(t, coordtest.Options{})
		client := m.Client(t)
		sema := view.Name{Kind: hold.KindSema, Name: "s"}
		p := &pen{t: t, client: client, name: sema}
		key := hold.SemaKey("s", 2, 7).String()
		p.put(key, "a")
		f := followClosely(t, client, sema)
		f.tells(t, "waiting a")
		p.remove(key)
		f.tells(t, "")
	})
}
