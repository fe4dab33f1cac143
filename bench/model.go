//go:build linux

package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/go-coord/coord/bench/plot"
)

// constants are what one more of a thing costs, as measured: the slope of a curve between its first and its last point.
type constants struct {
	hostCPU, holdCPU       float64 // of etcd's processor, ms a second for one process
	hostMemory, holdMemory float64 // of etcd, KB for one process: connection, streams, lease, keys
	storedMemory, stored   float64 // of etcd and its database, KB for one host: key and lease
	eventCPU               float64 // of etcd's processor, ms for one change told to one watcher
	watcherMemory          float64 // of etcd, KB for one watcher: connection and watch
	watcherCPU             float64 // of etcd's processor, ms a second for one watcher, without changes
	told                   float64 // ms to know one host, of many, from nothing
	jobMemory, jobCPU      float64 // of a conchd, KB and ms a second for one job that is not due
}

func (r record) constants() constants {
	const mega = 1000 // MB to KB
	slope := func(chart, line string) float64 { return r.chart(chart).Line(line).Slope() }
	return constants{
		hostCPU: slope("scale-live-processor", liveHosts), holdCPU: slope("scale-live-processor", liveHolds),
		hostMemory: mega * slope("scale-live-memory", liveHosts), holdMemory: mega * slope("scale-live-memory", liveHolds),
		storedMemory: mega * slope("scale-stored", storedMemory), stored: mega * slope("scale-stored", storedBytes),
		eventCPU: slope("scale-watchers", watchersEtcd), watcherMemory: mega * slope("scale-watchers-memory", storedMemory),
		watcherCPU: slope("scale-watchers-processor", watchersEtcd), told: slope("snapshot", "NewHostWatcher, told of all"),
		jobMemory: mega * slope("scale-jobs-memory", "conchd"), jobCPU: slope("scale-jobs-processor", "conchd"),
	}
}

// table names them, with the letters that the formulae use.
func (c constants) table() string {
	out := &strings.Builder{}
	fmt.Fprintln(out, "| constant | measured | what it is |\n|---|---|---|")
	for _, row := range []struct {
		letter string
		value  float64
		unit   string
		what   string
	}{
		{"*h*", c.hostCPU, "ms/s", "processor time of etcd for one registered host: a plain renewal each 3 s"},
		{"*o*", c.holdCPU, "ms/s", "the same for one office held: a renewal and a read each second"},
		{"*w*", c.watcherCPU, "ms/s", "the same for one watcher, while nothing changes: a read each 5 s"},
		{"*e*", c.eventCPU, "ms", "processor time of etcd to tell one watcher of one change"},
		{"*m_h*", c.hostMemory, "KB", "memory of etcd for one registered host: connection, stream, lease, key, watch on it"},
		{"*m_o*", c.holdMemory, "KB", "the same for one office held"},
		{"*m_w*", c.watcherMemory, "KB", "the same for one watcher"},
		{"*m_s*", c.storedMemory, "KB", "memory of etcd for one key and one lease that nobody is connected for"},
		{"*d*", c.stored, "KB", "database for one host"},
		{"*s*", c.told, "ms", "time of a new watcher, or of one that has to read again, for one host"},
		{"*j*", c.jobCPU, "ms/s", "processor time of one conchd for one job that is not due"},
		{"*m_j*", c.jobMemory, "KB", "memory of one conchd for one job"},
	} {
		fmt.Fprintf(out, "| %s | %s %s | %s |\n", row.letter, plot.Number(round(row.value)), row.unit, row.what)
	}
	return out.String()
}

// fleet is what the model is asked about.
type fleet struct {
	hosts, offices, watchers, jobs, daemons float64
	changes                                 float64 // of hosts, a second
}

// fleets are the columns of the model: an office for each ten hosts, a watcher for each hundred up to a thousand, two changes of a host a day, a job
// for each ten hosts up to ten thousand.
func fleets() (all []fleet) {
	const day = 86_400
	for _, h := range []float64{1000, 10_000, 100_000} {
		all = append(all, fleet{hosts: h, offices: h / 10, watchers: math.Min(h/100, 1000), jobs: math.Min(h/10, 10_000), daemons: 5, changes: 2 * h / day})
	}
	return all
}

// revoked is how many leases etcd ends in a second.
const revoked = 1000

// model is the table of what fleets cost.
func (c constants) model() string {
	rows := []struct {
		what string
		unit string
		of   func(f fleet) float64
	}{
		{"hosts *H*", "", func(f fleet) float64 { return f.hosts }},
		{"offices held *O* = H/10", "", func(f fleet) float64 { return f.offices }},
		{"watchers *W* = H/100, at most 1,000", "", func(f fleet) float64 { return f.watchers }},
		{"jobs *J* = H/10, at most 10,000, on *D* = 5 daemons", "", func(f fleet) float64 { return f.jobs }},
		{"renewals, H/3 + O", "/s", func(f fleet) float64 { return f.hosts/3 + f.offices }},
		{"reads, O + W/5", "/s", func(f fleet) float64 { return f.offices + f.watchers/5 }},
		{"writes, quiet, 2 changes a host a day", "/s", func(f fleet) float64 { return f.changes }},
		{"watch events, quiet, 2HW/day", "/s", func(f fleet) float64 { return f.changes * f.watchers }},
		{"processors of etcd's leader, (hH + oO + wW + e2HW/day) / 1,000", "cores", func(f fleet) float64 {
			return (c.hostCPU*f.hosts + c.holdCPU*f.offices + c.watcherCPU*f.watchers + c.eventCPU*f.changes*f.watchers) / 1000
		}},
		{"memory of etcd, m_h H + m_o O + m_w W", "MB", func(f fleet) float64 {
			return (c.hostMemory*f.hosts + c.holdMemory*f.offices + c.watcherMemory*f.watchers) / 1000
		}},
		{"database, dH", "MB", func(f fleet) float64 { return c.stored * f.hosts / 1000 }},
		{"1 % of the hosts go at once: until the last one's lease is revoked, beyond its TTL", "s", func(f fleet) float64 { return f.hosts / 100 / revoked }},
		{"the same: events to tell, HW/100", "", func(f fleet) float64 { return f.hosts / 100 * f.watchers }},
		{"the same: processor time of etcd, e HW/100 / 1,000", "s", func(f fleet) float64 { return c.eventCPU * f.hosts / 100 * f.watchers / 1000 }},
		{"a new watcher knows all hosts, sH", "ms", func(f fleet) float64 { return c.told * f.hosts }},
		{"one conchd, jobs that are not due: jJ / 1,000", "cores", func(f fleet) float64 { return c.jobCPU * f.jobs / 1000 }},
		{"the same: memory beyond an empty one's, m_j J", "MB", func(f fleet) float64 { return c.jobMemory * f.jobs / 1000 }},
	}
	all := fleets()
	out := &strings.Builder{}
	fmt.Fprintf(out, "| what | %s | %s | %s |\n|---|---|---|---|\n", "small", "medium", "large")
	for _, row := range rows {
		fmt.Fprintf(out, "| %s |", row.what)
		for _, f := range all {
			fmt.Fprintf(out, " %s |", strings.TrimSpace(plot.Number(round(row.of(f)))+" "+row.unit))
		}
		fmt.Fprintln(out)
	}
	return out.String()
}
