package cron

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

// idleTime is how long idle daemons are looked at: a variable of that name may say more, as in CRON_IDLE=60s.
const idleTime = "CRON_IDLE"

// Jobs that are not due cost next to nothing, however many there are.
func TestIdleJobsCostNothing(t *testing.T) {
	span, err := time.ParseDuration(cmp.Or(os.Getenv(idleTime), "10s"))
	if err != nil {
		t.Fatalf("%s: %v", idleTime, err)
	}
	for _, row := range []struct {
		jobs   int
		memory float64 // MB
		cpu    float64 // percent of a processor
	}{{1000, 30, 0.2}, {10_000, 100, 2}} {
		t.Run(fmt.Sprint(row.jobs), func(t *testing.T) {
			l := newLedger(newFleet(t, etcdtest.Cluster(t, 1).Endpoints()...))
			l.crowd(row.jobs, `{"schedule":"30 4 1 1 *","tz":"Europe/Berlin","script":"exit 0"}`)
			var daemons []*daemonProcess
			for _, host := range []string{"a", "b", "c"} {
				m := run.NewManager(t)
				env := append(l.env(), "NOTIFY_SOCKET="+m.Socket)
				daemons = append(daemons, l.start(run.Options{Path: run.BuildDaemon(t).Daemon, Env: env, Args: []string{"--host", host}}, host))
				m.Until("READY=1") // it knows all jobs
			}
			l.ended(l.once("hello", `{"cmd":["true"]}`), record.Success, "")
			before := map[string]time.Duration{}
			for _, d := range daemons {
				before[d.host] = spent(t, d.Pid())
			}
			time.Sleep(span) // that nothing is done all the while is the point
			for _, d := range daemons {
				cpu := 100 * (spent(t, d.Pid()) - before[d.host]).Seconds() / span.Seconds()
				memory := resident(t, d.Pid())
				t.Logf("%s: %.1f MB, %.2f %% of a processor", d.host, memory, cpu)
				// A clock of the kernel's that ticks a hundred times a second counts what runs at a tick: it is right on average only.
				if memory > row.memory || cpu > row.cpu+100*0.05/span.Seconds() {
					t.Errorf("%s: %.1f MB and %.2f %%, want at most %.0f MB and %.1f %%", d.host, memory, cpu, row.memory, row.cpu)
				}
				l.lives(d)
			}
		})
	}
}

// spent is the processor time that a process has used.
func spent(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var skip string
	var user, system int64
	fields := string(text)[strings.LastIndex(string(text), ")")+1:]
	// After the name in parentheses: eleven others, then the two, in hundredths of a second.
	_, err = fmt.Sscan(fields, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &user, &system)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// resident is the memory of a process, in MB.
func resident(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kb float64
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb / 1024
}
