package coord

import (
	"errors"
	"testing"
	"time"

	"github.com/go-coord/coord/coordtest"
)

// What takes the own key away between two looks is seen by nobody but the transaction that decides. Red when it does not
// compare the key's create revision (deleted, made anew), or its lease (moved).
func TestTheDecisionIsForWhoHasItsKey(t *testing.T) {
	for name, act := range map[string]func(w *world, key string, s *Session){
		"deleted": func(w *world, key string, _ *Session) { w.m.Delete(key) },
		"made anew": func(w *world, key string, s *Session) {
			w.m.Delete(key)
			_, err := w.m.Put(key, "b", s.Lease())
			w.must(err)
		},
		"moved": func(w *world, key string, _ *Session) {
			id, err := w.m.Grant(0, 60)
			w.must(err)
			_, err = w.m.Put(key, "b", id)
			w.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, coordtest.Options{}, func(w *world) {
				a, b := w.contender(settled), w.contender(settled)
				w.must(a.Campaign(w.Context(), "a"))
				call := w.campaign(w.Context(), b, "b")
				w.m.Inject(coordtest.Rule{Method: coordtest.Txn, When: coordtest.Puts("/open/x"), Action: coordtest.Before(func() {
					w.m.HoldWatches(true)
					act(w, "/e/x/"+leaseHex(b.Session()), b.Session())
				})})
				w.must(a.Resign(w.Context()))
				if err := call.wait().err; !errors.Is(err, ErrTermLost) {
					w.Errorf("campaign: %v, want the loss of the key", err)
				}
				if w.m.Get("/open/x") != nil {
					w.Error("a record was opened for a hold that is none")
				}
				w.m.HoldWatches(false)
			})
		})
	}
}

// A record that stands is not closed by whoever comes first to look at it. Red when the key of a later attempt on the lease
// that the record names counts as that hold's: the settler would never count from anything.
func TestALaterKeyOfTheRecordedLeaseIsNotThatHolds(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		s := w.session(SessionOptions{})
		time.Sleep(time.Minute)
		_, err := w.m.Put("/open/x", encodeRecord(s, 99, "before"), 0)
		w.must(err)
		call := w.campaign(w.Context(), w.election(s, settled), "now")
		w.must(call.wait().err)
		if call.at != 70*time.Second {
			w.Errorf("started at %v, want the recorded TTL after 1m", call.at)
		}
	})
}

// Red when the keys go first: whoever looks between the two would act for an office that another has.
func TestATermIsOverForItsHolderBeforeItsKeyGoes(t *testing.T) {
	inBubble(t, coordtest.Options{}, func(w *world) {
		e := w.contender(settled)
		term, err := e.CampaignTerm(w.Context(), "a")
		w.must(err)
		seen := make(chan error, 1)
		w.m.Inject(coordtest.Rule{Method: coordtest.Txn, Action: coordtest.Before(func() { seen <- term.Check() })})
		w.must(e.Resign(w.Context()))
		if err := <-seen; !errors.Is(err, ErrResigned) {
			w.Errorf("while its key was deleted, the term was told to be: %v", err)
		}
	})
}
