package record

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-coord/coord/internal/hold"
)

// ID names one start of a job, or the decision that there is none.
type ID struct {
	Tick int64  // unix seconds UTC: when it was due
	N    int    // 0: the claim of the tick itself; else the number of a further one
	Host string // of a job that runs on all hosts: whose claim it is; else empty
}

// String is the last element of a key.
func (id ID) String() string {
	s := strconv.FormatInt(id.Tick, 10)
	if id.N > 0 {
		s += "." + strconv.Itoa(id.N)
	}
	if id.Host != "" {
		s += "@" + id.Host
	}
	return s
}

// ParseID is the inverse of String, and refuses what String would not write.
func ParseID(s string) (ID, error) {
	rest, host, all := strings.Cut(s, "@")
	tick, n, further := strings.Cut(rest, ".")
	id := ID{Host: host}
	var err error
	if id.Tick, err = strconv.ParseInt(tick, 10, 64); err != nil || id.Tick < 0 {
		return ID{}, idError(s)
	}
	if further {
		if id.N, err = strconv.Atoi(n); err != nil || id.N < 1 {
			return ID{}, idError(s)
		}
	}
	if all && hold.ValidName(host) != nil || id.String() != s {
		return ID{}, idError(s)
	}
	return id, nil
}

// Compare orders by tick, then by number, then by host.
func (id ID) Compare(o ID) int {
	return cmp.Or(cmp.Compare(id.Tick, o.Tick), cmp.Compare(id.N, o.N), cmp.Compare(id.Host, o.Host))
}

func idError(s string) error {
	return fmt.Errorf(`parse id "%s": want a tick in unix seconds, and perhaps .<number> and @<host>`, hold.EscapeCut(s, 40))
}
