package supervise

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// Red when something that a child is to have is not passed on, or what it used is not told.
func TestTheChildHasWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	mask := 0o027
	cfg := testConfig
	cfg.Inherit, cfg.Path, cfg.Argv, cfg.Env, cfg.Dir = true, "/bin/job", []string{"job"}, []string{"A=b"}, "/srv"
	cfg.Stdin, cfg.Stdout, cfg.Stderr = "/proc/7/fd/8", "/proc/7/fd/9", "/proc/7/fd/10"
	cfg.Credential, cfg.Umask = &guard.Credential{UID: 1, GID: 2, Groups: []uint32{3}}, &mask
	m := newMachine(cfg, 0)
	m.step(about("", guard.Event{Kind: guard.KindReady}))
	did := m.step(event{kind: evAcquired, info: testInfo, deadlines: hold.Deadlines{Term: time.Hour, Kill: 2 * time.Hour}})
	want := &guard.Spec{
		Path: "/bin/job", Argv: []string{"job"}, Env: []string{"A=b"}, Dir: "/srv",
		Stdin: "/proc/7/fd/8", Stdout: "/proc/7/fd/9", Stderr: "/proc/7/fd/10",
		Credential: &guard.Credential{UID: 1, GID: 2, Groups: []uint32{3}}, Umask: &mask,
	}
	if diff := cmp.Diff(want, did[len(did)-1].request.Spec); diff != "" {
		t.Error(diff)
	}
	used := guard.Usage{User: 1, Sys: 2, MaxRSS: 3}
	m.step(about(m.live, guard.Event{Kind: guard.KindStarted}))
	m.step(about(m.live, guard.Event{Kind: guard.KindExited, Usage: used}))
	m.step(about(m.live, guard.Event{Kind: guard.KindGone}))
	did = m.step(released(nil))
	if got := did[len(did)-1].outcome.Usage; got != used {
		t.Errorf("%+v", got)
	}
}
