package coordination

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestWhatALeaseNeeds(t *testing.T) {
	t.Parallel()
	good := Lease{Key: "k", Owner: "o", Token: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for says, lease := range map[string]Lease{
		"no key":   {Owner: "o", Token: 1},
		"no owner": {Key: "k", Token: 1},
		"no token": {Key: "k", Owner: "o"},
	} {
		if err := lease.Validate(); !errors.Is(err, ErrInvalidLease) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %s", lease, err, says)
		}
	}
}

func TestOfTwoClocksTheStricterCounts(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, row := range map[string]struct {
		expires, now time.Time
		left         time.Duration
	}{
		"both agree":                       {now.Add(time.Minute), now, time.Minute},
		"over":                             {now.Add(-time.Second), now, -time.Second},
		"the wall clock is a minute ahead": {now.Add(time.Minute), now.Add(-time.Minute).Round(0), 2 * time.Minute},
		"no monotonic reading":             {now.Add(time.Minute).Round(0), now, time.Minute},
	} {
		if got := (Lease{ExpiresAt: row.expires}).remaining(row.now); got != row.left {
			t.Errorf("%s: %v, want %v", name, got, row.left)
		}
	}
	if (Lease{ExpiresAt: now.Add(time.Hour)}).Expired() || !(Lease{ExpiresAt: now}).Expired() || !(Lease{}).Expired() {
		t.Error("expired or not")
	}
}

func TestALeaseSurvivesJSON(t *testing.T) {
	t.Parallel()
	lease := Lease{Key: "k", Owner: "o", Token: 1<<63 + 1, ExpiresAt: time.Now().Add(time.Minute)}
	raw, err := json.Marshal(lease)
	if err != nil {
		t.Fatal(err)
	}
	var back Lease
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if !back.ExpiresAt.Equal(lease.ExpiresAt) || back.Key != lease.Key || back.Owner != lease.Owner || back.Token != lease.Token {
		t.Errorf("%+v, want %+v", back, lease)
	}
}
