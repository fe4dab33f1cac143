package cron

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

const (
	// patience is how long a test waits for something that has to happen, before it fails.
	patience = time.Minute
	// slack is what a busy machine may add to a time that is short by design.
	slack = 3 * time.Second
	// registered is what a daemon logs when it takes part.
	registered = "msg=registered"
)

// fleet is an etcd, the jobs in it, and the daemons that run them.
type fleet struct {
	*testing.T
	endpoints []string
	cli       *clientv3.Client
	// mark is in the environment of each job, and of nothing else.
	mark    string
	daemons []*daemonProcess
}

// daemonProcess is one conchd.
type daemonProcess struct {
	*run.Process
	host string
}

// newFleet begins with an etcd, and no jobs.
func newFleet(t *testing.T, endpoints ...string) *fleet {
	t.Helper()
	return &fleet{T: t, endpoints: endpoints, cli: etcdtest.Client(t, endpoints...), mark: filepath.Join(t.TempDir(), "mark")}
}

// one is a fleet on a member of its own.
func one(t *testing.T) *fleet {
	t.Helper()
	return newFleet(t, etcdtest.One(t).Endpoint())
}

func (f *fleet) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// env are the variables of a daemon.
func (f *fleet) env() []string { return []string{"CONCH_ENDPOINTS=" + strings.Join(f.endpoints, ",")} }

// launch starts conchd, and does not wait.
func (f *fleet) launch(host string, flags ...string) *daemonProcess {
	f.Helper()
	return f.start(run.Options{Path: run.BuildDaemon(f).Daemon, Env: f.env(), Args: append([]string{"--host", host}, flags...)}, host)
}

func (f *fleet) start(o run.Options, host string) *daemonProcess {
	f.Helper()
	d := &daemonProcess{run.StartWith(f, o), host}
	f.daemons = append(f.daemons, d)
	return d
}

// daemon starts conchd, and waits until it is registered.
func (f *fleet) daemon(host string, flags ...string) *daemonProcess {
	f.Helper()
	d := f.launch(host, flags...)
	d.WaitLog(registered)
	return d
}

// registered reports whether a daemon has said that it takes part.
func (d *daemonProcess) registered() bool { return strings.Contains(d.Stderr(), registered) }

// skewed is daemon on a host whose clock is off.
func (f *fleet) skewed(host string, off time.Duration, flags ...string) *daemonProcess {
	f.Helper()
	self, err := os.Executable()
	f.must(err)
	d := f.start(run.Options{Path: self, Env: f.env(), Args: append([]string{daemonRole, off.String(), "--host", host}, flags...)}, host)
	d.WaitLog(registered)
	return d
}

// stop stops a daemon as an operator does.
func (f *fleet) stop(d *daemonProcess) {
	f.Helper()
	d.Signal(syscall.SIGTERM)
	if code := d.Code(); code != 0 {
		f.Errorf("%s: exit code %d, want 0; stderr: %s", d.host, code, d.Stderr())
	}
}

// freeze stops a daemon for a while.
func (f *fleet) freeze(d *daemonProcess, span time.Duration) {
	d.Stop()
	time.Sleep(span) // that it does nothing all the while is the point
	d.Signal(syscall.SIGCONT)
}

// lives fails if a daemon has ended by itself.
func (f *fleet) lives(daemons ...*daemonProcess) {
	f.Helper()
	for _, d := range daemons {
		select {
		case <-d.Exited():
			f.Errorf("%s ended by itself with code %d; stderr: %s", d.host, d.Code(), d.Stderr())
		default:
		}
	}
}

// add puts a job. The fleet's mark is in its environment.
func (f *fleet) add(name, fields string) {
	f.Helper()
	spec := strings.TrimSuffix(strings.TrimSpace(fields), "}")
	if !strings.Contains(spec, `"env"`) {
		spec += fmt.Sprintf(`,"env":{"MARK":%q}`, f.mark)
	}
	_, err := f.cli.Put(f.Context(), record.JobKey(name), spec+"}")
	f.must(err)
}

// request asks for a start by hand, and returns the name of the run.
func (f *fleet) request(job string) string {
	f.Helper()
	id := record.ID{Tick: time.Now().Unix(), N: 1}
	_, err := f.cli.Put(f.Context(), record.Key(record.Wants, job, id), record.Encode(record.Want{Kind: record.Manual, Attempt: 1}))
	f.must(err)
	return job + "/" + id.String()
}

// once adds a job that has no ticks, asks for one start, and gives its result.
func (f *fleet) once(name, fields string) record.Result {
	f.Helper()
	f.add(name, `{"schedule":"@manual",`+strings.TrimPrefix(strings.TrimSpace(fields), "{"))
	return f.result(f.request(name))
}

// result waits for the result of a run.
func (f *fleet) result(run string) record.Result {
	f.Helper()
	return f.await(record.Results+run, func(record.Result) bool { return true })
}

// next waits for a result of a job, of a tick after one.
func (f *fleet) next(job string, after int64) record.Result {
	f.Helper()
	return f.await(record.Range(record.Results, job), func(r record.Result) bool { return r.Tick > after })
}

// await waits for a result below a prefix.
func (f *fleet) await(prefix string, want func(record.Result) bool) record.Result {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()
	for got := range f.cli.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(1)) {
		f.must(got.Err())
		for _, ev := range got.Events {
			if r := f.decode(ev.Kv.Key, ev.Kv.Value); ev.Type == clientv3.EventTypePut && want(r) {
				return r
			}
		}
	}
	f.Fatalf("no result below %s; %s", prefix, f.logs())
	return record.Result{}
}

func (f *fleet) decode(key, value []byte) record.Result {
	f.Helper()
	r, ok := record.Decode[record.Result](value)
	if !ok && len(value) > 0 {
		f.Errorf("no result at %s: %q", key, value)
	}
	return r
}

// results are all results of a job, in the order of their ids.
func (f *fleet) results(job string) (all []record.Result) {
	f.Helper()
	got, err := f.cli.Get(f.Context(), record.Range(record.Results, job), clientv3.WithPrefix())
	f.must(err)
	for _, kv := range got.Kvs {
		all = append(all, f.decode(kv.Key, kv.Value))
	}
	slices.SortFunc(all, func(a, b record.Result) int {
		x, errA := a.ID()
		y, errB := b.ID()
		if errA != nil || errB != nil {
			f.Errorf("run ids %q, %q", a.RunID, b.RunID)
		}
		return x.Compare(y)
	})
	return all
}

// running waits until a start of a job is known to etcd to live, and gives its id.
func (f *fleet) running(job string) record.ID {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()
	for got := range f.cli.Watch(ctx, record.Range(record.Runs, job), clientv3.WithPrefix(), clientv3.WithRev(1)) {
		f.must(got.Err())
		for _, ev := range got.Events {
			if ev.Type == clientv3.EventTypePut {
				_, id, err := record.ParseKey(record.Runs, string(ev.Kv.Key))
				f.must(err)
				return id
			}
		}
	}
	f.Fatalf("%s does not run; %s", job, f.logs())
	return record.ID{}
}

// until waits for something that etcd shows. It polls: what is waited for is in several areas.
func (f *fleet) until(what string, done func() bool) {
	f.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(50 * time.Millisecond) { // a poll of etcd
		if time.Now().After(end) {
			f.Fatalf("%s; %s", what, f.logs())
		}
	}
}

// keys are those below a prefix.
func (f *fleet) keys(prefix string) (keys []string) {
	f.Helper()
	got, err := f.cli.Get(context.WithoutCancel(f.Context()), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	f.must(err)
	for _, kv := range got.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// logs are those of all daemons, for a failure.
func (f *fleet) logs() string {
	var all strings.Builder
	for _, d := range f.daemons {
		fmt.Fprintf(&all, "%s (%d):\n%s", d.host, d.Pid(), d.Stderr())
	}
	return all.String()
}

// family are the processes that jobs started and that live, whatever became of their parents.
func (f *fleet) family() (pids []int) {
	f.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	f.must(err)
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(raw), "\x00"), "MARK="+f.mark) {
			continue // it ended meanwhile, or is none of ours
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		f.must(err)
		if run.Alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// empty fails if anything of a job lives.
func (f *fleet) empty() {
	f.Helper()
	if left := f.family(); len(left) > 0 {
		for _, pid := range left {
			f.Logf("%d: %s", pid, run.Comm(pid))
		}
		f.Errorf("left behind: %v", left)
	}
}
