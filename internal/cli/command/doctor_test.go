package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-coord/coord/internal/cli/doctor"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

func TestDoctorPrintsWhatItFinds(t *testing.T) {
	t.Parallel()
	s := at(t)
	s.conch("doctor", "--json")
	for line := range strings.Lines(s.stdout.String()) {
		var one doctor.Finding
		if err := json.Unmarshal([]byte(line), &one); err != nil || one.Check == "" || one.Level == "" || one.Text == "" {
			t.Errorf("%q: %v", line, err)
		}
	}
	if s.stderr.String() != "" {
		t.Errorf("stderr %q", s.stderr.String())
	}
	table := at(t)
	table.conch("doctor", "--ttl", "20s")
	contains(t, table.stdout.String(), "ok", "arithmetic", "ttl 20s", "permission", "/conch/v1/elect/")
}

func TestDoctorOfADeadEtcd(t *testing.T) {
	t.Parallel()
	dead := etcdtest.Refused(t)
	s := newShell("CONCH_ENDPOINTS="+dead, "CONCH_DIAL_TIMEOUT=100ms")
	if code := s.conch("doctor"); code != hold.CodeUnreachable {
		t.Errorf("code %d", code)
	}
	contains(t, s.stdout.String(), "fail", "endpoint", dead, "connection refused")
	contains(t, s.stderr.String(), "conch: etcd unreachable: no endpoint of "+dead+" answers")
}

// TestDoctorsTableIsNoWiderThanItHasToBe: a key can be as long as somebody likes.
func TestDoctorsTableIsNoWiderThanItHasToBe(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 300)
	f := &doctorFlags{}
	table := string(f.print([]doctor.Finding{{Check: "keys", Level: doctor.Warn, Target: long, Text: "odd"}, {Check: "lease", Level: doctor.OK, Text: "granted"}}))
	for line := range strings.Lines(table) {
		if len(line) > columnMost+50 {
			t.Errorf("%d bytes: %q", len(line), line)
		}
	}
	contains(t, table, strings.Repeat("k", columnMost)+"...  odd\n", "-  ")
}
