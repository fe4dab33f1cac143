package coord

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxSlots is the highest Max. Who decides reads the keys of all slots.
const maxSlots = 1000

// SemaphoreOptions configure a [Semaphore].
type SemaphoreOptions struct {
	// Key names the semaphore; its candidates are the keys under Key + "/<max>/". Required.
	Key string
	// Max is how many may hold at the same time, from 1 to 1000. All contenders have to use the same. Required.
	Max int
	// TTL is the lease time of each hold, in whole seconds. Default 10 s. A session that is given has its own.
	TTL time.Duration
	// Identity is what an Acquire with an empty identity writes.
	Identity string
	// Logger gets renewals that failed, at debug level. nil discards.
	Logger *slog.Logger

	// Slots is where the slots' keys lie: Slots + "/<max>/<slot>". Default Key + ".slots", so a semaphore must not
	// be named as another with ".slots" behind it. All contenders have to use the same.
	Slots string
	// Settle makes the successor in a slot wait until a holder that lost its keys early has surely ended, where no
	// other slot is free. Its keys are prefixes here: a slot's records are at Open + "/<max>/<slot>" and
	// Last + "/<max>/<slot>". Off by default.
	Settle SettleOptions
	// Waiting is called by the acquiring goroutine whenever what it waits for changes. It must not block. There is
	// no one leader to be told of.
	Waiting func(Waiting)
	// Placed is called by the acquiring goroutine as soon as a key of the attempt is known to exist, and again before
	// it asks for a slot, so that what it was told last names all that there may be: see [ElectionOptions].
	Placed func(TermKeys)
	// IgnoreOtherMax enters although something of another Max is there, and ignores it: the two together let in more
	// than either. It is for whoever knows that what is there is of no consequence.
	IgnoreOtherMax bool
	// Grace and Margin are those of each hold's session; see [SessionOptions].
	Grace, Margin time.Duration
	// Clock is that of each hold's session. Default [Now].
	Clock func() time.Duration
	// Metrics is told of acquisitions, as of campaigns, and of what each hold's session goes through.
	Metrics Metrics
}

// Semaphore lets Max holders in at the same time, in the order in which they came. A hold is a [Term] with a slot, a
// number from 0 to Max - 1 that nobody else has meanwhile.
//
// Each hold has a lease of its own: nothing but its own trouble ends it. A Semaphore itself holds nothing, and has no
// goroutine; each term does until it is given to Release. It is safe for concurrent use.
type Semaphore struct {
	cli  *clientv3.Client
	s    *Session // that all holds are on; nil: each has its own
	opts SemaphoreOptions

	queue, slots, open, last ward
}

// NewSemaphore makes a semaphore whose holds have sessions of their own. It asks etcd nothing.
func NewSemaphore(cli *clientv3.Client, o SemaphoreOptions) (*Semaphore, error) {
	return newSemaphore(cli, nil, o)
}

// Semaphore makes a semaphore on this session. There it can hold once at a time: another Acquire waits for its turn
// in this process.
func (s *Session) Semaphore(o SemaphoreOptions) (*Semaphore, error) {
	o.Clock = s.clock
	return newSemaphore(s.cli, s, o)
}

func newSemaphore(cli *clientv3.Client, s *Session, o SemaphoreOptions) (*Semaphore, error) {
	if o.Clock == nil {
		o.Clock = Now
	}
	o.Slots = slotsOf(o.Key, o.Slots)
	if err := o.validate(); err != nil {
		return nil, err
	}
	m := &Semaphore{cli: cli, s: s, opts: o, queue: newWard(o.Key, o.Max), slots: newWard(o.Slots, o.Max)}
	if o.Settle.on() {
		m.open, m.last = newWard(o.Settle.Open, o.Max), newWard(o.Settle.Last, o.Max)
	}
	return m, nil
}

// slotsOf is slots, or the default of a semaphore's key.
func slotsOf(key, slots string) string { return cmp.Or(slots, strings.TrimSuffix(key, "/")+".slots") }

func (o SemaphoreOptions) validate() error {
	switch {
	case strings.Trim(o.Key, "/") == "":
		return fmt.Errorf("%w: key %q: want a name", ErrInvalidOption, o.Key)
	case o.Max < 1 || o.Max > maxSlots:
		return fmt.Errorf("%w: max %d: want a number from 1 to %d", ErrInvalidOption, o.Max, maxSlots)
	case (o.Settle.Open == "") != (o.Settle.Last == ""):
		return fmt.Errorf("%w: settle: want both keys or none", ErrInvalidOption)
	}
	bases := []string{o.Key, o.Slots}
	if o.Settle.on() {
		bases = append(bases, o.Settle.Open, o.Settle.Last)
	}
	for i, a := range bases {
		for j, b := range bases {
			if i != j && strings.HasPrefix(prefixOf(a), prefixOf(b)) {
				return fmt.Errorf("%w: keys %q and %q: want neither below the other", ErrInvalidOption, a, b)
			}
		}
	}
	_, err := NewBounds(o.TTL, o.Margin, o.Grace)
	return err
}
