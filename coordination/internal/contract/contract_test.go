package contract

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/coordination"
)

func TestWhatMakesNoSenseIsNamed(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		key, owner string
		ttl        time.Duration
		says       string
	}{
		{"", "o", time.Second, "no key"},
		{"k", "", time.Second, "no owner"},
		{"k", "o", 0, "ttl 0s"},
		{"k", "o", -time.Second, "ttl -1s"},
		{"k", "o", 1, ""},
	} {
		err := Acquire(row.key, row.owner, row.ttl)
		if (err == nil) != (row.says == "") {
			t.Errorf("%+v: %v", row, err)
		}
		if err != nil && (!errors.Is(err, coordination.ErrInvalidLease) || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%+v: %v", row, err)
		}
	}
	if err := Renew(coordination.Lease{Key: "k", Owner: "o"}, time.Second); !errors.Is(err, coordination.ErrInvalidLease) {
		t.Error(err)
	}
}

func TestALeaseEndsATenthBeforeTheStoreLetsGoAndNeverPastWhatWasAsked(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, row := range []struct{ asked, granted, want time.Duration }{
		{10 * time.Second, 10 * time.Second, 9 * time.Second},
		{1500 * time.Millisecond, 2 * time.Second, 1500 * time.Millisecond},
		{1900 * time.Millisecond, 2 * time.Second, 1800 * time.Millisecond},
		{time.Second, 10 * time.Second, time.Second},
		{10 * time.Second, 2 * time.Second, 1800 * time.Millisecond}, // a store that granted less
		{time.Second, 0, 0},
	} {
		if got := ExpiresAt(now, row.asked, row.granted).Sub(now); got != row.want {
			t.Errorf("asked %v, granted %v: %v, want %v", row.asked, row.granted, got, row.want)
		}
	}
	if far := ExpiresAt(now, math.MaxInt64, math.MaxInt64); !far.After(now.AddDate(200, 0, 0)) {
		t.Error(far)
	}
}
