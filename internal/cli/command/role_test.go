package command

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// testament is what a holder leaves with its guard, and the settings that go with it.
func testament(t *testing.T, el *coord.Election) (settings, keys string) {
	t.Helper()
	raw, err := json.Marshal(el.Term().Keys())
	if err != nil {
		t.Fatal(err)
	}
	s := cli.Settings{Endpoints: etcdtest.Shared(t).Endpoints(), DialTimeout: 5 * time.Second}
	return string(s.Encode()), string(raw)
}

func TestAGuardReleasesForADeadWrapper(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	el := lead(t, office, "dead")
	settings, keys := testament(t, el)
	for range 2 { // it may be repeated
		if err := releaseFrom(strings.NewReader(settings), strings.NewReader(keys), false); err != nil {
			t.Fatal(err)
		}
	}
	cli := etcdtest.Shared(t).Client(t)
	queue(t, cli, office, 0)
	end, found, err := coord.LastEnd(t.Context(), cli, settle(office))
	if err != nil || !found || end.How != "orphaned" || end.Holder != "dead" {
		t.Errorf("got %+v, %v, %v", end, found, err)
	}
}

func TestAGuardClosesTheRecordOfAFrozenWrapper(t *testing.T) {
	t.Parallel()
	office := etcdtest.Office(t)
	el := lead(t, office, "frozen")
	settings, keys := testament(t, el)
	if err := releaseFrom(strings.NewReader(settings), strings.NewReader(keys), true); err != nil {
		t.Fatal(err)
	}
	cli := etcdtest.Shared(t).Client(t)
	queue(t, cli, office, 1)
	end, found, err := coord.LastEnd(t.Context(), cli, settle(office))
	if err != nil || !found || end.How != "lost" {
		t.Errorf("got %+v, %v, %v", end, found, err)
	}
}

func TestAReleaseWithoutItsPapersFails(t *testing.T) {
	t.Parallel()
	good := string(cli.Settings{Endpoints: []string{"127.0.0.1:1"}, DialTimeout: time.Second}.Encode())
	for _, tt := range []struct{ settings, keys string }{{"", "{}"}, {"{}", "{}"}, {good, ""}, {good, "[]"}} {
		if err := releaseFrom(strings.NewReader(tt.settings), strings.NewReader(tt.keys), false); err == nil {
			t.Errorf("settings %q, testament %q: want an error", tt.settings, tt.keys)
		}
	}
	if err := releaseFrom(unreadable{}, strings.NewReader("{}"), false); err == nil {
		t.Error("settings that cannot be read: want an error")
	}
}

type unreadable struct{}

func (unreadable) ReadAt([]byte, int64) (int, error) { return 0, errors.New("unreadable") }

func TestAProcessOfAUserPlaysNoRole(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"conch"}, {"conch", "elect"}, {"holdguard"}} {
		if _, played := Role(args); played {
			t.Errorf("%q plays a role", args)
		}
	}
}

// releaseFrom is the work of the release program.
func releaseFrom(settings io.ReaderAt, testament io.Reader, closing bool) error {
	s, err := releaseSettings(settings)
	if err != nil {
		return err
	}
	return releaseFor(s, testament, closing)
}
