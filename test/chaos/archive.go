//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

// stored is the archive in etcd.
type stored struct{ client *clientv3.Client }

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
