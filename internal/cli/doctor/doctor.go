// Package doctor looks at an etcd with the eyes of a hold: is it there, fast enough, healthy, does it let us do what
// a hold needs, and is there anything wrong with what is held in it. It changes nothing: the two leases that it asks for
// carry no key and are revoked, and what it must be allowed to write is asked for in a branch of a transaction that is
// never taken.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-semver/semver"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// Level says what a finding means for whoever is paged.
type Level string

const (
	OK   Level = "ok"
	Note Level = "note" // could not be found out, or worth knowing
	Warn Level = "warn" // works today
	Fail Level = "fail" // does not work, or a promise does not hold
)

// Finding is one thing that was looked at.
type Finding struct {
	Check  string `json:"check"`  // a stable word
	Level  Level  `json:"level"`  // ok, note, warn or fail
	Target string `json:"target"` // endpoint, prefix, key or name; empty where it is about the cluster
	Text   string `json:"text"`   // for people. Both are safe on a terminal
}

// Plan is what is to be judged: a hold with these values.
type Plan struct {
	TTL, KillAfter, Margin time.Duration
}

const (
	roundTrips = 5   // the median counts
	scanPage   = 500 // keys a request
	scanMost   = 100_000
	showMost   = 5   // of one sort of finding
	targetMost = 250 // bytes, before they are escaped
	textMost   = 400
)

// visit is one run.
type visit struct {
	dial     dial
	cli      *clientv3.Client
	settings cli.Settings
	plan     Plan
	found    []Finding
	floor    time.Duration // the shortest lease that etcd grants; 0: not known
}

// Visit looks at everything. It returns an error, beside what it found out, where no endpoint answers at all.
func Visit(ctx context.Context, s cli.Settings, plan Plan) ([]Finding, error) {
	return visitBy(ctx, cli.Settings.Client, s, plan)
}

// dial makes a client of settings.
type dial func(cli.Settings) (*clientv3.Client, error)

func visitBy(ctx context.Context, dial dial, s cli.Settings, plan Plan) ([]Finding, error) {
	client, err := dial(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", hold.ErrUnreachable, err)
	}
	defer client.Close()
	v := &visit{dial: dial, cli: client, settings: s, plan: plan}
	if !v.endpoints(ctx) {
		return v.found, fmt.Errorf("%w: no endpoint of %s answers", hold.ErrUnreachable, strings.Join(s.Endpoints, ","))
	}
	for _, look := range []func(context.Context){v.roundTrip, v.lease, v.arithmetic, v.alarms, v.permissions, v.keys, v.hosts, v.cron} {
		look(ctx)
	}
	return v.found, nil
}

func (v *visit) say(check string, level Level, target, format string, args ...any) {
	v.found = append(v.found, Finding{check, level, hold.EscapeCut(target, targetMost), hold.EscapeCut(fmt.Sprintf(format, args...), textMost)})
}

// bounded is the time for one question.
func (v *visit) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, v.settings.DialTimeout)
}

// endpoints asks each by itself, and reports whether one answered.
func (v *visit) endpoints(ctx context.Context) (reached bool) {
	clusters := map[uint64]bool{}
	for _, endpoint := range v.settings.Endpoints {
		one := v.settings
		one.Endpoints = []string{endpoint}
		status, took, err := v.ask(ctx, one)
		if err != nil {
			v.say("endpoint", Fail, endpoint, "%v", err)
			continue
		}
		reached = true
		clusters[status.Header.ClusterId] = true
		role := "follower"
		switch {
		case status.Leader == 0:
			v.say("endpoint", Fail, endpoint, "etcd %s knows no leader: it can grant and renew nothing", status.Version)
			continue
		case status.IsLearner:
			role = "learner, which serves no reads that can be relied on"
		case status.Leader == status.Header.MemberId:
			role = "leader"
		}
		v.say("endpoint", OK, endpoint, "etcd %s, %s, answered in %v", status.Version, role, short(took))
		v.version(endpoint, status.Version)
		v.quota(endpoint, status)
		for _, e := range status.Errors {
			v.say("endpoint", Fail, endpoint, "it says of itself: %s", e)
		}
	}
	if len(clusters) > 1 {
		v.say("cluster", Fail, "", "the endpoints belong to %d different clusters: a hold in one means nothing in another", len(clusters))
	}
	return reached
}

// ask is one endpoint's own word.
func (v *visit) ask(ctx context.Context, s cli.Settings) (status *clientv3.StatusResponse, took time.Duration, err error) {
	client, err := v.dial(s)
	if err != nil {
		return nil, 0, err
	}
	defer client.Close()
	err = s.Reach(ctx, client, func(ctx context.Context) error {
		began := time.Now()
		status, err = client.Status(ctx, client.Endpoints()[0])
		took = time.Since(began)
		return err
	})
	return status, took, err
}

// safe are the first releases of each line in which CVE-2026-44283 is mended.
var safe = []semver.Version{{Major: 3, Minor: 4, Patch: 44}, {Major: 3, Minor: 5, Patch: 30}, {Major: 3, Minor: 6, Patch: 11}}

// version warns of servers with a known hole.
func (v *visit) version(endpoint, version string) {
	got, err := semver.NewVersion(version)
	if err != nil {
		v.say("version", Note, endpoint, "%q is no version that is known here", version)
		return
	}
	for _, s := range safe {
		if got.Major == s.Major && got.Minor == s.Minor && got.LessThan(s) {
			v.say("version", Warn, endpoint, "etcd %s has CVE-2026-44283, which lets a user past its permissions: update to %s or later", version, s.String())
		}
	}
	if got.LessThan(semver.Version{Major: 3, Minor: 4}) {
		v.say("version", Warn, endpoint, "etcd %s gets no updates any more: update to 3.6.11 or later", version)
	}
}

// quota warns while there is time: a full etcd grants no hold.
func (v *visit) quota(endpoint string, s *clientv3.StatusResponse) {
	if s.DbSizeQuota <= 0 {
		return
	}
	percent := s.DbSize * 100 / s.DbSizeQuota
	level := OK
	if percent >= 80 {
		level = Warn
	}
	v.say("quota", level, endpoint, "%d of %d MB used, %d %%", s.DbSize>>20, s.DbSizeQuota>>20, percent)
}

// roundTrip compares a linearizable read with the time that an attempt to renew has.
func (v *visit) roundTrip(ctx context.Context) {
	var all []time.Duration
	for range roundTrips {
		try, cancel := v.bounded(ctx)
		began := time.Now()
		_, err := v.cli.Get(try, hold.Root, clientv3.WithCountOnly())
		took := time.Since(began)
		cancel()
		if err != nil && !errors.Is(cli.Classify(err), hold.ErrPermission) {
			v.say("round-trip", Fail, "", "a linearizable read failed: %v", err)
			return
		}
		all = append(all, took)
	}
	slices.Sort(all)
	median, worst := all[len(all)/2], all[len(all)-1]
	attempt := min(v.plan.TTL, 40*time.Second) / 20
	level, what := OK, "in time"
	switch {
	case median > attempt:
		level, what = Fail, "too slow: attempts will fail, until they are given more time"
	case worst > attempt/2:
		level, what = Warn, "little room: a slow moment costs an attempt"
	}
	v.say("round-trip", level, "", "a linearizable read takes %v, at worst %v; a renewal is due every %v and an attempt has %v: %s",
		short(median), short(worst), short(v.plan.TTL/10), short(attempt), what)
}

// lease asks for the lease of the plan and for the shortest there is.
func (v *visit) lease(ctx context.Context) {
	granted, err := v.grant(ctx, v.plan.TTL)
	if err != nil {
		v.say("lease", Fail, "", "no lease was granted: %v", cli.Classify(err))
		return
	}
	if v.floor, err = v.grant(ctx, time.Second); err != nil {
		v.say("lease", Fail, "", "no lease was granted: %v", cli.Classify(err))
		return
	}
	level := OK
	if granted != v.plan.TTL {
		level = Warn
		v.plan.TTL = granted
	}
	v.say("lease", level, "", "granted %v; the shortest that it grants is %v", short(granted), short(v.floor))
}

// grant gets a lease and gives it back.
func (v *visit) grant(ctx context.Context, ttl time.Duration) (time.Duration, error) {
	ctx, cancel := v.bounded(ctx)
	defer cancel()
	got, err := v.cli.Grant(ctx, int64(ttl/time.Second))
	if err != nil {
		return 0, err
	}
	_, _ = v.cli.Revoke(ctx, got.ID) // it runs out by itself
	return time.Duration(got.TTL) * time.Second, nil
}

// arithmetic prints the row of the guarantee, and compares the silence with what etcd needs to change its leader.
func (v *visit) arithmetic(context.Context) {
	b := hold.BoundsOf(v.plan.TTL, v.plan.KillAfter, v.plan.Margin)
	v.say("arithmetic", OK, "", "ttl %v: renewed every %v; etcd may be silent for %v; SIGTERM %v after the last renewal, SIGKILL after %v; the key lives for %v",
		short(b.TTL), short(b.Renew), short(b.Silence), short(b.Term), short(b.Kill), short(b.TTL))
	if b.Grace < v.plan.KillAfter {
		v.say("arithmetic", Warn, "", "on a loss a child gets %v, not the %v of kill-after: --ttl %v would fit",
			short(b.Grace), short(v.plan.KillAfter), short(hold.FittingTTL(v.plan.KillAfter, v.plan.Margin)))
	}
	if v.floor == 0 {
		return
	}
	// The floor is one and a half election timeouts, rounded up to a second: so this is right to a third of one.
	election := (v.floor - 500*time.Millisecond) * 2 / 3
	level, what := OK, "a change of leader costs no hold"
	if b.Silence < 2*election {
		level, what = Warn, "a change of leader may cost the hold: a longer --ttl is needed"
	}
	v.say("silence", level, "", "etcd may be silent for %v, and elects a leader in about %v, or twice that when votes split: %s",
		short(b.Silence), short(election), what)
}

func (v *visit) alarms(ctx context.Context) {
	ctx, cancel := v.bounded(ctx)
	defer cancel()
	got, err := v.cli.AlarmList(ctx)
	switch {
	case errors.Is(cli.Classify(err), hold.ErrPermission):
		v.say("alarms", Note, "", "this user may not see alarms")
	case err != nil:
		v.say("alarms", Fail, "", "alarms cannot be read: %v", err)
	case len(got.Alarms) == 0:
		v.say("alarms", OK, "", "none")
	default:
		for _, a := range got.Alarms {
			v.say("alarms", Fail, fmt.Sprintf("member %x", a.MemberID), "%v", a.Alarm)
		}
	}
}

// short leaves out what nobody reads.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(100 * time.Microsecond)
	default:
		d = d.Round(time.Microsecond)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	return s
}
