package command

import (
	"context"
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/plan"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/schedule"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// cronRuns are the commands of "conch cron" that are about runs.
func (c *call) cronRuns() []*cobra.Command {
	return []*cobra.Command{
		c.cronRun(), c.cronPs(), c.cronLog(), c.cronHistory(), c.cronWhy(), c.cronKill(), c.cronPause(), c.cronResume(), c.cronBackfill(),
		c.cronNodes(), c.cronDrain(), c.cronUndrain(),
	}
}

// jobName reads the name of a job.
func jobName(cmd *cobra.Command, args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", cli.Usagef("no job given: %s", usageLine(cmd))
	case len(args) > 1:
		return "", cli.Usagef("one job is accepted, got %s too", cli.Quote(args[1]))
	}
	return args[0], hold.ValidName(args[0])
}

// caller says who asks: whoever does something to all nodes' jobs signs it.
func caller() string {
	name := "unknown"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return name + "@" + hostname()
}

// whyLimit is how long a reason may be that goes into records.
const whyLimit = 200

// checkWhy judges --why.
func checkWhy(why string) error {
	if len(why) > whyLimit || strings.ContainsFunc(why, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return cli.Usagef("--why %s: want one line of at most %d bytes", cli.Quote(why), whyLimit)
	}
	return nil
}

// signed is who asks, and why.
func signed(why string) string {
	if why == "" {
		return caller()
	}
	return caller() + ": " + why
}

// withEtcd connects, and has request ask. It has to be one that may be repeated.
func (c *call) withEtcd(ctx context.Context, conn *cli.Connection, needs []cli.Need, request func(context.Context, *clientv3.Client) error) error {
	client, err := c.connect(ctx, conn)
	if err != nil {
		return err
	}
	defer client.Close()
	return reached(ctx, conn, client, needs, request)
}

// reached has request ask, on a connection that there is.
func reached(ctx context.Context, conn *cli.Connection, client *clientv3.Client, needs []cli.Need, request func(context.Context, *clientv3.Client) error) error {
	err := conn.Reach(ctx, client, func(ctx context.Context) error { return request(ctx, client) })
	return lacking(client, conn.Settings, needs, err)
}

// reads are the needs of a question; writes those of what is changed beside.
func reads(keys ...string) (all []cli.Need) {
	for _, key := range keys {
		if !strings.HasSuffix(key, "@") { // which lies beside a key that is asked for
			all = append(all, cli.Need{Key: key})
		}
	}
	return all
}

func writes(keys ...string) (all []cli.Need) {
	for _, key := range keys {
		all = append(all, cli.Need{Key: key, Writes: true})
	}
	return all
}

// pictured is a job as it was read.
type pictured struct {
	*plan.Picture
	name  string
	spec  *job.Job // nil: it cannot be read, which is broken
	job   plan.Job
	where *time.Location // of its schedule
	why   error          // why it cannot be read
}

// lookJob reads a job, which has to be there.
func lookJob(ctx context.Context, client *clientv3.Client, name string) (*pictured, error) {
	is, err := store.Look(ctx, client, name)
	if err != nil {
		return nil, err
	}
	if is.SpecRev == 0 {
		return nil, noSuchJob(ctx, client, name)
	}
	k := &pictured{Picture: is, name: name, where: time.UTC}
	zones, err := schedule.OpenZones()
	if err != nil {
		return nil, err
	}
	if k.spec, k.why = job.ParseIn(zones, name, is.Spec); k.why == nil {
		k.job, k.why = plan.JobOf(name, is.SpecRev, k.spec, zones)
	}
	if k.why != nil {
		k.spec = nil
		return k, nil
	}
	if k.spec.TZ != "" {
		if zone, err := zones.Load(k.spec.TZ); err == nil {
			k.where = zone.Location()
		}
	}
	return k, nil
}

// refusedError is an error that says all by itself; kind gives it its exit code.
type refusedError struct {
	text string
	kind error
}

func refuse(kind error, format string, args ...any) error {
	return refusedError{fmt.Sprintf(format, args...), kind}
}

func (r refusedError) Error() string { return r.text }
func (r refusedError) Unwrap() error { return r.kind }

// readable refuses a job that cannot be read: no node runs it.
func (k *pictured) readable() error {
	if k.why != nil {
		return refuse(hold.ErrNo, "job %s cannot be read, and no node runs it: %v", k.name, k.why)
	}
	return nil
}

// noSuchJob says that, and which one may have been meant.
func noSuchJob(ctx context.Context, client *clientv3.Client, name string) error {
	hint := ""
	if near := cli.Near(name, namesAt(ctx, client, record.Jobs, "")); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return refuse(hold.ErrNo, "there is no job %s%s", name, hint)
}

// stopText says who stopped something, and until when.
func stopText(s record.Stop) string {
	text := "by " + shown(s.By)
	if s.Why != "" {
		text += ": " + shown(s.Why)
	}
	if s.At > 0 {
		text += ", " + stamp(time.UnixMilli(s.At))
	}
	if s.Until > 0 {
		text += ", until " + stamp(time.UnixMilli(s.Until))
	}
	return text
}

// inPause refuses what a pause forbids.
func (k *pictured) inPause(now time.Time) error {
	switch {
	case k.Pause.By != "" && k.Pause.In(now.UnixMilli()):
		return refuse(hold.ErrNotAcquired, "all jobs are paused %s", stopText(k.Pause))
	case k.job.Paused.By != "" && k.job.Paused.In(now.UnixMilli()):
		return refuse(hold.ErrNotAcquired, "job %s is paused %s", k.name, stopText(k.job.Paused))
	}
	return nil
}

// stamp is a moment for people and programs.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// tickText is a tick, in the zone of its job where that is another one.
func tickText(tick int64, where *time.Location) string {
	at := time.Unix(tick, 0)
	text := strconv.FormatInt(tick, 10) + " (" + stamp(at)
	if where != time.UTC {
		text += ", " + at.In(where).Format("2006-01-02 15:04:05 MST")
	}
	return text + ")"
}

// brief is a length of time for people.
func brief(d time.Duration) string {
	switch {
	case d.Abs() < 10*time.Second:
		return d.Round(time.Millisecond).String()
	case d.Abs() < 100*time.Hour:
		return d.Round(time.Second).String()
	}
	return strconv.Itoa(int(d.Hours()/24)) + " days"
}
