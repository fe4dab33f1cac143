package coord_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-coord/coord"
)

// The shortest correct use: the work is done while leading, and the office is given up when it is over.
func ExampleElection_Do() {
	_, cli, done := connect()
	defer done()

	ctx := context.Background()
	el, err := coord.NewElection(ctx, cli, coord.ElectionOptions{Key: "/coord/elect/reconcile"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer el.Close()
	err = el.Do(ctx, "host-1", func(ctx context.Context, term *coord.Term) error {
		leader, err := el.Leader(ctx)
		fmt.Println("leader:", leader.Identity, "with the token of this term:", leader.Token == term.Token())
		return err // work that takes longer ends when ctx does
	})
	fmt.Println("done:", err)
	_, err = el.Leader(ctx)
	fmt.Println("nobody leads:", errors.Is(err, coord.ErrNoLeader))
	// Output:
	// leader: host-1 with the token of this term: true
	// done: <nil>
	// nobody leads: true
}

// A term that is lost says so, with the cause: here somebody has deleted the leader's key.
func ExampleTerm_Context() {
	etcd, cli, done := connect()
	defer done()

	ctx := context.Background()
	el, err := coord.NewElection(ctx, cli, coord.ElectionOptions{Key: "/coord/elect/reconcile"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer el.Close()
	term, err := el.CampaignTerm(ctx, "host-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	etcd.Delete(term.Keys().Key)
	<-term.Context().Done()
	cause := context.Cause(term.Context())
	fmt.Println(errors.Is(cause, coord.ErrTermLost), errors.Is(cause, coord.ErrKeyGone))
	// Output: true true
}

// One session carries many elections: one lease, one renewal, and one fate.
func ExampleSession_Election() {
	etcd, cli, done := connect()
	defer done()

	ctx := context.Background()
	session, err := coord.NewSession(ctx, cli, coord.SessionOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"/coord/elect/a", "/coord/elect/b"} {
		el, err := session.Election(coord.ElectionOptions{Key: key})
		if err != nil {
			fmt.Println(err)
			return
		}
		won, err := el.TryCampaign(ctx, "host-1")
		fmt.Println(key, won, err)
	}
	fmt.Println("leases:", len(etcd.Leases()))
	fmt.Println("closed:", session.Close(ctx), "left:", etcd.Keys(""))
	// Output:
	// /coord/elect/a true <nil>
	// /coord/elect/b true <nil>
	// leases: 1
	// closed: <nil> left: []
}
