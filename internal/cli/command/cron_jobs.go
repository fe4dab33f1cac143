package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/cron/store"
	"github.com/go-coord/coord/internal/hold"
)

// cronJobs are the jobs in etcd, as one command works with them.
type cronJobs struct {
	client *clientv3.Client
	conn   *cli.Connection
	now    func() time.Time
	by     string
}

// withJobs does something with the jobs.
func (c *call) withJobs(ctx context.Context, conn *cli.Connection, do func(*cronJobs) error) error {
	client, err := c.connect(ctx, conn)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(&cronJobs{client: client, conn: conn, now: time.Now, by: caller()})
}

// ask makes a request that takes these permissions, and that may be repeated.
func (a *cronJobs) ask(ctx context.Context, needs []cli.Need, request func(ctx context.Context) error) error {
	if err := a.conn.Reach(ctx, a.client, request); err != nil {
		return lacking(a.client, a.conn.Settings, needs, err)
	}
	return nil
}

// find reads a job, where there has to be one.
func (a *cronJobs) find(ctx context.Context, name string) (s store.Stored, err error) {
	if s, err = a.look(ctx, name); err == nil && s.Rev == 0 {
		ctx, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		return s, noSuchJob(ctx, a.client, name)
	}
	return s, err
}

// look reads a job; its revision is 0 where there is none.
func (a *cronJobs) look(ctx context.Context, name string) (s store.Stored, err error) {
	err = a.ask(ctx, []cli.Need{{Key: record.JobKey(name)}}, func(ctx context.Context) error {
		s, err = store.Job(ctx, a.client, name)
		return err
	})
	return s, err
}

// all reads every job.
func (a *cronJobs) all(ctx context.Context) (all []store.Stored, err error) {
	err = a.ask(ctx, []cli.Need{{Key: record.Jobs}}, func(ctx context.Context) error {
		all, err = store.Jobs(ctx, a.client)
		return err
	})
	return all, err
}

// some reads those that are named, each of which has to be there; of no names, all.
func (a *cronJobs) some(ctx context.Context, names []string) (all []store.Stored, err error) {
	if len(names) == 0 {
		return a.all(ctx)
	}
	for _, name := range names {
		s, err := a.find(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// last reads the newest results of jobs.
func (a *cronJobs) last(ctx context.Context, jobs []store.Stored) (last map[string]record.Result, err error) {
	var names []string
	for _, s := range jobs {
		names = append(names, s.Name)
	}
	err = a.ask(ctx, []cli.Need{{Key: record.Results}}, func(ctx context.Context) error {
		last, err = store.LastResults(ctx, a.client, names)
		return err
	})
	return last, err
}

// parsed is a job that stands in etcd, where it can be read.
func parsed(s store.Stored) (*job.Job, error) {
	j, err := job.Parse(s.Name, s.Value)
	if err != nil {
		return nil, fmt.Errorf("job %s cannot be read: %s", s.Name, strings.TrimPrefix(err.Error(), job.ErrSpec.Error()+": "))
	}
	return j, nil
}

// jobArguments accepts names of jobs: least at least, most at most.
func jobArguments(args []string, least, most int, usage string) error {
	switch {
	case len(args) < least:
		return cli.Usagef("no job given: conch cron %s", usage)
	case len(args) > most:
		return cli.Usagef("one job is accepted, got %s too", cli.Quote(args[most]))
	}
	for _, name := range args {
		if err := hold.ValidName(name); err != nil {
			return err
		}
	}
	return nil
}
