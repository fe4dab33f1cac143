package coord

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// OtherMaxError says that a semaphore is in use under another max. It is [ErrOtherMax].
type OtherMaxError struct {
	Key     string
	Max     int      // that was asked for
	Other   int      // that is in use; 0 where a key is there whose max is no number
	Holders []Holder // under the other max: its candidates, or, where none is left, the slots that nobody knows to be over
}

func (e *OtherMaxError) Error() string {
	var who []string
	for _, h := range e.Holders {
		who = append(who, fmt.Sprintf("%q", cmp.Or(h.Identity, h.Key)))
	}
	return fmt.Sprintf("%v: %q has max %d, asked for %d: %s", ErrOtherMax, e.Key, e.Other, e.Max, strings.Join(who, ", "))
}

// Unwrap makes it an ErrOtherMax.
func (e *OtherMaxError) Unwrap() error { return ErrOtherMax }

// otherMax is the refusal because of keys of another max.
func (m *Semaphore) otherMax(kvs []*mvccpb.KeyValue) error {
	e := &OtherMaxError{Key: m.opts.Key, Max: m.opts.Max}
	for _, w := range m.wards() {
		if len(e.Holders) > 0 {
			break
		}
		for _, kv := range kvs {
			if !strings.HasPrefix(string(kv.Key), w.all) {
				continue
			}
			e.Other = w.maxOf(string(kv.Key))
			h := Holder{Candidate: CandidateOf(kv), Max: e.Other, Slot: -1}
			if w != m.queue {
				h.Slot, h.Identity = slotNumber(kv), DecodeRecord(kv, 0).Holder
			}
			e.Holders = append(e.Holders, h)
		}
	}
	slices.SortFunc(e.Holders, func(a, b Holder) int { return cmp.Compare(a.Token, b.Token) })
	return e
}
