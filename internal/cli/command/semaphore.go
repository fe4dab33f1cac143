package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// semaphore is the contest of "conch sema".
type semaphore struct {
	name        string
	max         int
	settle      coord.SettleOptions
	ignoreOther bool
	spreadBy    string // --spread: the name of this host; empty: not spread
	progress    *progress
}

func (m *semaphore) needs() []cli.Need { return semaNeeds(m.name, m.settle.Open != "", m.spreadBy) }

// refusal names both maxima, where another one is in use, and who holds under that.
func (m *semaphore) refusal(err error) error {
	var other *coord.OtherMaxError
	if !errors.As(err, &other) {
		return err
	}
	max := "a max that is no number"
	if other.Other > 0 {
		max = fmt.Sprintf("max %d", other.Other)
	}
	return refused{fmt.Sprintf("%s is in use with %s, not with %d: %s (--ignore-other-max ignores them)", m.name, max, m.max, seatsText(other.Holders))}
}

// refused is why a semaphore is not entered.
type refused struct{ text string }

func (r refused) Error() string { return hold.ErrNotAcquired.Error() + ": " + r.text }
func (r refused) Unwrap() error { return hold.ErrNotAcquired }

// nameMost is how many holders a line names.
const nameMost = 3

// seatText says in a few words who is at a semaphore.
func seatText(h coord.Holder) string {
	who, _ := hold.DecodeHolder([]byte(h.Identity))
	text := who.String()
	switch {
	case h.Identity == "":
		text = "a holder that left its place in the queue"
	case text == "":
		text = "somebody"
	}
	switch {
	case h.Slot >= 0 && who.Fenced:
		return fmt.Sprintf("slot %d left by %s, whose on-lose failed: nobody is at work", h.Slot, text)
	case h.Slot >= 0:
		return fmt.Sprintf("slot %d by %s", h.Slot, text)
	}
	return text
}

// seatsText names the first few.
func seatsText(all []coord.Holder) string {
	var who []string
	for _, h := range all[:min(len(all), nameMost)] {
		who = append(who, seatText(h))
	}
	text := strings.Join(who, ", ")
	if more := len(all) - nameMost; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// queue: whoever waits for a turn (--spread) waits for the end of the session, and is not in it.
func (m *semaphore) queue() (string, int) { return hold.SemaMaxRange(m.name, m.max), m.max }

func (m *semaphore) begin(s *coord.Session, placed func(coord.TermKeys)) (attempt, error) {
	sema, err := s.Semaphore(coord.SemaphoreOptions{
		Key: hold.SemaPrefix(m.name), Max: m.max, Slots: hold.SlotPrefix(m.name), Settle: m.settle,
		Waiting: m.progress.queueing(m.max), Placed: placed, IgnoreOtherMax: m.ignoreOther,
	})
	if err != nil || m.spreadBy == "" {
		return &slot{semaphore: m, sema: sema}, err
	}
	turn, err := s.Election(coord.ElectionOptions{
		Key: hold.SpreadPrefix(m.name, m.spreadBy), Placed: placed, Waiting: m.progress.spreading,
	})
	return &slot{semaphore: m, sema: sema, turn: turn}, err
}

// holders names those who hold, the first few; or who comes first, where nobody does yet, or where only one of a host may.
func (m *semaphore) holders(ctx context.Context, client *clientv3.Client) string {
	if turn := m.turn(ctx, client); turn != "" {
		return turn
	}
	all, err := coord.ListHolders(ctx, client, hold.SemaPrefix(m.name), hold.SlotPrefix(m.name))
	all = slices.DeleteFunc(all, func(h coord.Holder) bool { return h.Max != m.max })
	held := slices.DeleteFunc(slices.Clone(all), func(h coord.Holder) bool { return h.Slot < 0 })
	switch {
	case err != nil || len(all) == 0:
		return ""
	case len(held) == 0:
		return ": next is " + seatText(all[0])
	}
	return ": " + seatsText(held)
}

// turn names who goes first on this host, where the slots are spread and somebody does.
func (m *semaphore) turn(ctx context.Context, client *clientv3.Client) string {
	if m.spreadBy == "" {
		return ""
	}
	queue, err := coord.ListCandidates(ctx, client, hold.SpreadPrefix(m.name, m.spreadBy))
	if err != nil || len(queue) == 0 {
		return ""
	}
	return ": on this host " + seatText(coord.Holder{Candidate: queue[0], Slot: -1}) + " goes first (--spread)"
}

// slot is one attempt at a slot. Where the slots are to be spread over hosts, the contenders of one host take turns: an
// election on the same session decides whose turn it is, so it ends with the hold. It is of no consequence for who may
// hold: a turn that is lost meanwhile ends nothing.
type slot struct {
	*semaphore
	sema *coord.Semaphore
	turn *coord.Election // nil: no turns are taken
}

func (a *slot) wait(ctx context.Context, identity string) (*coord.Term, error) {
	if a.turn != nil {
		if _, err := a.turn.CampaignTerm(ctx, identity); err != nil {
			return nil, err
		}
	}
	return a.sema.Acquire(ctx, identity)
}

func (a *slot) try(ctx context.Context, identity string) (*coord.Term, error) {
	if a.turn != nil {
		switch won, err := a.turn.TryCampaign(ctx, identity); {
		case err != nil:
			return nil, err
		case !won:
			return nil, hold.ErrNotAcquired
		}
	}
	term, held, err := a.sema.TryAcquire(ctx, identity)
	switch {
	case err != nil:
		return nil, err
	case !held:
		return nil, hold.ErrNotAcquired
	}
	return term, nil
}

func (a *slot) release(ctx context.Context, t *coord.Term, how coord.End) error {
	return a.sema.ReleaseAs(ctx, t, how) // the turn goes with the session
}
