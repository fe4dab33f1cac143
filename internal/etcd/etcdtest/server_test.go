package etcdtest

import (
	"context"
	"regexp"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func put(t *testing.T, c *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := c.Put(within(t), key, value); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, c *clientv3.Client, key string) string {
	t.Helper()
	r, err := c.Get(within(t), key)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Kvs) == 0 {
		return ""
	}
	return string(r.Kvs[0].Value)
}

// briefly is for calls that are expected never to be answered.
func briefly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestOneIsAloneAndSurvivesStopAndStart(t *testing.T) {
	t.Parallel()
	a, b := One(t), One(t)
	put(t, a.Client(t), "k", "v")
	if got := get(t, b.Client(t), "k"); got != "" {
		t.Fatalf("two members share data: %q", got)
	}
	a.Stop()
	a.Stop()
	if _, err := Client(t, a.Endpoints()...).Get(briefly(t), "k"); err == nil {
		t.Fatal("a stopped member answers")
	}
	a.Start()
	a.Start()
	if got := get(t, a.Client(t), "k"); got != "v" {
		t.Fatalf("k = %q after a restart", got)
	}
}

func TestOneGrantsLeasesOfOneSecond(t *testing.T) {
	t.Parallel()
	l, err := One(t).Client(t).Grant(within(t), 1)
	if err != nil || l.TTL != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
}

func TestSharedIsOnePerProcess(t *testing.T) {
	t.Parallel()
	a, b := Shared(t), Shared(t)
	if a.Endpoint() != b.Endpoint() {
		t.Fatalf("%s and %s", a.Endpoint(), b.Endpoint())
	}
	p, q := Prefix(t), Prefix(t)
	put(t, a.Client(t), p+"k", "v")
	if got := get(t, b.Client(t), p+"k"); got != "v" {
		t.Fatalf("k = %q", got)
	}
	if got := get(t, b.Client(t), q+"k"); got != "" {
		t.Fatalf("two prefixes are one: %q", got)
	}
}

func TestNamesAreValidAndUnique(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^t-[a-z0-9]{20,40}$`)
	a, b := Office(t), Office(t)
	if a == b || !valid.MatchString(a) || !valid.MatchString(b) {
		t.Fatalf("%q, %q", a, b)
	}
}

func TestPortsAreReservedOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 50 {
		a := reserve(t)
		if seen[a] {
			t.Fatalf("%s twice", a)
		}
		seen[a] = true
	}
}
