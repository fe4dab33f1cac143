//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

// stored is the archive in etcd.
type stored struct {
	client *clientv3.Client
	logs   string // the folder where members and daemons say what there was no space for
}

func (s stored) results(job, host string) (all []record.Result, cursor int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := s.client.Get(ctx, record.Range(record.Results, job), clientv3.WithPrefix())
	if err != nil {
		return nil, 0, err
	}
	for _, kv := range got.Kvs {
		r, ok := record.Decode[record.Result](kv.Value)
		if !ok {
			return nil, 0, fmt.Errorf("%s holds %s", kv.Key, hold.EscapeCut(string(kv.Value), 100))
		}
		if host == "" || strings.HasSuffix(string(kv.Key), "@"+host) {
			all = append(all, r)
		}
	}
	at, err := s.client.Get(ctx, record.CursorKey(job, host))
	if err != nil || len(at.Kvs) == 0 {
		return all, 0, err
	}
	c, ok := record.Decode[record.Cursor](at.Kvs[0].Value)
	if !ok {
		err = fmt.Errorf("%s holds %s", at.Kvs[0].Key, hold.EscapeCut(string(at.Kvs[0].Value), 100))
	}
	return all, c.Tick, err
}

func (s stored) open() (all []int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), glance)
	defer cancel()
	got, err := s.client.Get(ctx, record.Opens, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	for _, kv := range got.Kvs {
		_, id, err := record.ParseOpen(string(kv.Key))
		if err != nil {
			return nil, err
		}
		all = append(all, id.Tick)
	}
	return all, nil
}

// refused reads what members say of requests that they refused, where the key of the result stands in the request, and what daemons
// say of results that they keep for later.
func (s stored) refused() (map[string]bool, error) {
	words := map[string]*regexp.Regexp{
		"m*":      regexp.MustCompile(`key:\\"` + record.Results + `([^"\\]+)\\".*etcdserver: no space`),
		"conchd*": regexp.MustCompile(`out of space: the result is kept until there is some" run=(\S+)`),
	}
	all := map[string]bool{}
	var err error
	for logs, says := range words {
		paths, failed := filepath.Glob(filepath.Join(s.logs, logs))
		err = errors.Join(err, failed)
		for _, path := range paths {
			text, failed := os.ReadFile(path)
			err = errors.Join(err, failed)
			for line := range bytes.Lines(text) {
				// A claim is made again later, with its verdict.
				if found := says.FindSubmatch(line); found != nil && !bytes.Contains(line, []byte(record.Fires)) {
					all[string(found[1])] = true
				}
			}
		}
	}
	return all, err
}

// full are the times in which etcd had no space.
func full(events []event) (all []span) {
	began := map[int]time.Duration{}
	for _, e := range events {
		switch {
		case e.Fault != "nospace":
		case e.What == whatMiss: // it may have been raised, and was taken back
			all = append(all, span{e.At - 2*injection, e.At})
		case e.What == whatFault:
			began[e.ID] = e.At - injection
		case e.What == whatHeal:
			all = append(all, span{began[e.ID], e.At})
		}
	}
	return all
}

// unsaid adds the runs of a job whose daemon ended after them while etcd had no space, or right after that: it has taken their results
// along, and perhaps it had no time to say so.
func unsaid(job string, events []event, refused map[string]bool) {
	const moment = 2 * time.Second
	spans := full(events)
	ended := map[string][]time.Duration{} // by daemon
	for _, e := range events {
		if e.What == whatExit {
			ended[e.Part] = append(ended[e.Part], e.At)
		}
	}
	for _, e := range holds(events, job) {
		if e.What != whatStop {
			continue
		}
		for _, at := range ended[e.Part] {
			for _, s := range spans {
				if e.At < at && e.At < s.to+moment && at > s.from && at < s.to+moment {
					tick, _, _ := strings.Cut(e.Value, " ")
					refused[job+"/"+tick] = true
					refused[job+"/"+tick+"@"+e.Part] = true
				}
			}
		}
	}
}
