package linear

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// did is one call of a made-up history. Calls are one after the other, unless they say until when they last.
type did struct {
	Call
	Answer
	lasts int64 // so many further calls begin before it returns
}

func historyOf(calls []did) []porcupine.Operation {
	var history []porcupine.Operation
	for i, d := range calls {
		op := porcupine.Operation{Input: d.Call, Output: d.Answer, Call: int64(10 * i), Return: int64(10*i) + 5 + 10*d.lasts}
		if d.Unknown {
			op.Return = math.MaxInt64
		}
		history = append(history, op)
	}
	return history
}

// granted, refused and so on are calls at a second of the history.
func granted(token uint64, at, until time.Duration) did {
	return did{Call: Call{Kind: Acquire, Key: "k"}, Answer: Answer{Held: true, Token: token, Expires: until * time.Second, At: at * time.Second}}
}

func refused(at time.Duration) did {
	return did{Call: Call{Kind: Acquire, Key: "k"}, Answer: Answer{At: at * time.Second}}
}

func renewed(token uint64, at, until time.Duration) did {
	return did{Call: Call{Kind: Renew, Key: "k", Token: token}, Answer: Answer{Held: true, Token: token, Expires: until * time.Second, At: at * time.Second}}
}

func over(token uint64, at time.Duration) did {
	return did{Call: Call{Kind: Renew, Key: "k", Token: token}, Answer: Answer{At: at * time.Second}}
}

func released(token uint64, at time.Duration) did {
	return did{Call: Call{Kind: Release, Key: "k", Token: token}, Answer: Answer{At: at * time.Second}}
}

func unknown(d did) did { d.Answer = Answer{Unknown: true}; return d }

func lasting(n int64, d did) did { d.lasts = n; return d }

func TestWhatALockMaySay(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		calls []did
		ok    bool
	}{
		"held, refused, released, held":                      {[]did{granted(1, 0, 9), refused(1), released(1, 2), granted(2, 3, 9)}, true},
		"granted to two":                                     {[]did{granted(1, 0, 9), granted(2, 3, 9)}, false},
		"granted after an end by time":                       {[]did{granted(1, 0, 9), granted(2, 9, 19)}, true},
		"a token that falls":                                 {[]did{granted(2, 0, 9), released(2, 1), granted(1, 3, 9)}, false},
		"a token that stays":                                 {[]did{granted(2, 0, 9), released(2, 1), granted(2, 3, 9)}, false},
		"refused although nobody holds it":                   {[]did{refused(0)}, false},
		"refused after a release":                            {[]did{granted(1, 0, 9), released(1, 1), refused(2)}, false},
		"refused long after the end: it may have been slow":  {[]did{granted(1, 0, 9), refused(99)}, true},
		"renewed, and not given away before the new end":     {[]did{granted(1, 0, 9), renewed(1, 5, 14), granted(2, 10, 19)}, false},
		"renewed, and given away at the new end":             {[]did{granted(1, 0, 9), renewed(1, 5, 14), granted(2, 14, 19)}, true},
		"not renewed although it is good":                    {[]did{granted(1, 0, 9), over(1, 5)}, false},
		"not renewed after its end":                          {[]did{granted(1, 0, 9), over(1, 9)}, true},
		"not renewed after its end, and then refused":        {[]did{granted(1, 0, 9), over(1, 9), refused(10)}, false},
		"not renewed after its end, and then renewed":        {[]did{granted(1, 0, 9), over(1, 9), renewed(1, 10, 19)}, false},
		"renewed after a release":                            {[]did{granted(1, 0, 9), released(1, 1), renewed(1, 2, 9)}, false},
		"renewed although superseded":                        {[]did{granted(1, 0, 9), granted(2, 9, 19), renewed(1, 10, 19)}, false},
		"not renewed, since superseded":                      {[]did{granted(1, 0, 9), granted(2, 9, 19), over(1, 10), renewed(2, 11, 20)}, true},
		"a late release does nothing":                        {[]did{granted(1, 0, 9), granted(2, 9, 19), released(1, 10), refused(11)}, true},
		"a late release freed the successor":                 {[]did{granted(1, 0, 9), granted(2, 9, 19), released(1, 10), granted(3, 11, 20)}, false},
		"overlapping calls, in the order that is possible":   {[]did{lasting(1, refused(1)), granted(1, 0, 9)}, true},
		"an unknown acquire refuses others":                  {[]did{unknown(granted(0, 0, 0)), refused(1), refused(2), granted(1, 3, 9)}, true},
		"an unknown acquire may never have happened":         {[]did{unknown(granted(0, 0, 0)), granted(1, 0, 9), over(2, 1), released(1, 2), granted(2, 3, 9)}, true},
		"an unknown acquire does not supersede a good lease": {[]did{granted(1, 0, 9), unknown(granted(0, 0, 0)), granted(2, 3, 9)}, false},
		"an unknown release may have happened":               {[]did{granted(1, 0, 9), unknown(released(1, 0)), granted(2, 3, 9)}, true},
		"or not":                                             {[]did{granted(1, 0, 9), unknown(released(1, 0)), refused(3)}, true},
		"but not both":                                       {[]did{granted(1, 0, 9), unknown(released(1, 0)), granted(2, 2, 9), over(1, 3), released(2, 4), refused(5)}, false},
		"an unknown release of another token frees nothing":  {[]did{granted(1, 0, 9), unknown(released(7, 0)), granted(2, 3, 9)}, false},
		"an unknown renewal leaves the old end":              {[]did{granted(1, 0, 9), unknown(renewed(1, 0, 0)), granted(2, 9, 19)}, true},
	} {
		if err := JudgeLocks(historyOf(row.calls), time.Minute); (err == nil) != row.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeysAreLocksOfTheirOwn(t *testing.T) {
	t.Parallel()
	other := granted(1, 0, 9)
	other.Key = "other"
	if err := JudgeLocks(historyOf([]did{granted(1, 0, 9), other}), time.Minute); err != nil {
		t.Error(err)
	}
}

func TestAConflictIsShown(t *testing.T) {
	t.Parallel()
	err := JudgeLocks(historyOf([]did{granted(1, 0, 9), unknown(released(7, 0)), released(8, 1), renewed(1, 2, 20), granted(2, 3, 9), refused(4)}), time.Minute)
	if err == nil {
		t.Fatal("no conflict")
	}
	for _, want := range []string{
		`"k": no order of 6 calls`, "acquire -> 1 until 9s, at 0s", "renew(1) -> 1 until 20s, at 2s", "release(8) -> done",
		"none of these can follow", "acquire -> 2 until 9s, at 3s",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q", err, want)
		}
	}
}

// Where too many calls were not answered, the search is given up and says so: that is no verdict.
func TestASearchThatTakesTooLongIsNoVerdict(t *testing.T) {
	t.Parallel()
	var calls []did
	for i := range 60 {
		calls = append(calls, unknown(released(uint64(i), 0)), lasting(60, granted(uint64(i+1), 0, 0)), lasting(60, refused(0)))
	}
	calls = append(calls, granted(1, 0, 9), granted(1, 0, 9))
	err := JudgeLocks(historyOf(calls), 20*time.Millisecond)
	if !errors.Is(err, ErrUndecided) || !strings.Contains(err.Error(), "no order found in 20ms") {
		t.Error(err)
	}
}
