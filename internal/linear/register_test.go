package linear

import (
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// accessed is one call of a made-up history, which returns before the next one begins unless it says until when it lasts.
type accessed struct {
	Access
	Outcome
	lasts int64 // so many further calls begin before it returns
}

func wrote(token uint64, value string) accessed {
	return accessed{Access: Access{Write: true, Key: "k", Token: token, Value: value}}
}

func fenced(token, seen uint64) accessed {
	return accessed{Access: Access{Write: true, Key: "k", Token: token, Value: "never"}, Outcome: Outcome{Refused: true, Seen: seen}}
}

func read(value string) accessed {
	return accessed{Access: Access{Key: "k"}, Outcome: Outcome{Value: value}}
}

func unheard(a accessed) accessed { a.Outcome = Outcome{Unknown: true}; return a }

func during(n int64, a accessed) accessed { a.lasts = n; return a }

func accesses(calls []accessed) (history []porcupine.Operation) {
	for i, a := range calls {
		op := porcupine.Operation{Input: a.Access, Output: a.Outcome, Call: int64(10 * i), Return: int64(10*i) + 5 + 10*a.lasts}
		if a.Unknown {
			op.Return = Never
		}
		history = append(history, op)
	}
	return history
}

func TestWhatAFencedRegisterMaySay(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		calls []accessed
		ok    bool
	}{
		"nothing was written":                            {[]accessed{read("")}, true},
		"something is read that nobody wrote":            {[]accessed{read("a")}, false},
		"written and read":                               {[]accessed{wrote(1, "a"), read("a"), wrote(1, "b"), read("b"), wrote(2, "c"), read("c")}, true},
		"what was overwritten is read":                   {[]accessed{wrote(1, "a"), wrote(1, "b"), read("a")}, false},
		"a stale write is refused":                       {[]accessed{wrote(2, "b"), fenced(1, 2), read("b")}, true},
		"a stale write lands":                            {[]accessed{wrote(2, "b"), wrote(1, "a")}, false},
		"a stale write lands, and nobody says so":        {[]accessed{wrote(2, "b"), unheard(wrote(1, "a")), read("a")}, false},
		"a stale write nobody heard of":                  {[]accessed{wrote(2, "b"), unheard(wrote(1, "a")), read("b")}, true},
		"refused although none was higher":               {[]accessed{wrote(1, "a"), fenced(1, 1)}, false},
		"refused for a token that nobody came with":      {[]accessed{wrote(2, "a"), fenced(1, 3)}, false},
		"refused for a token that comes during the call": {[]accessed{wrote(1, "a"), during(1, fenced(1, 2)), wrote(2, "b")}, true},
		"a write without an answer may have happened":    {[]accessed{unheard(wrote(1, "a")), read("a")}, true},
		"or not":                        {[]accessed{unheard(wrote(1, "a")), read("")}, true},
		"or later":                      {[]accessed{unheard(wrote(1, "a")), read(""), read("a")}, true},
		"but not both, and not twice":   {[]accessed{unheard(wrote(1, "a")), read("a"), read("")}, false},
		"its token is seen":             {[]accessed{unheard(wrote(2, "b")), fenced(1, 2)}, true},
		"it comes late, and is refused": {[]accessed{unheard(wrote(1, "a")), wrote(2, "b"), read("b"), read("b")}, true},
		"reads that overlap a write may see the one or both": {[]accessed{during(2, wrote(1, "a")), read(""), read("a")}, true},
		"but do not go back":                    {[]accessed{during(2, wrote(1, "a")), read("a"), read("")}, false},
		"a read without an answer says nothing": {[]accessed{unheard(read("")), wrote(1, "a"), read("a")}, true},
	} {
		if err := JudgeRegister("k", accesses(row.calls), time.Minute); (err == nil) != row.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheConflictOfARegisterIsShown(t *testing.T) {
	t.Parallel()
	err := JudgeRegister("k", accesses([]accessed{wrote(2, "b"), fenced(1, 2), unheard(wrote(1, "x")), read("b"), wrote(1, "a")}), time.Minute)
	if err == nil {
		t.Fatal("no conflict")
	}
	for _, want := range []string{
		`"k": no order of 5 calls`, `write(2, "b") -> done`, `write(1, "never") -> refused, 2 seen`, `read -> "b"`,
		"none of these can follow", `write(1, "a") -> done`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q", err, want)
		}
	}
}
