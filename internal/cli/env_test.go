package cli

import (
	"slices"
	"testing"
)

func TestLookupTakesTheFirstOfSeveral(t *testing.T) {
	t.Parallel()
	env := Env{Environ: []string{"A=1", "A=2", "E=", "ODD", "X=a=b"}}
	for name, want := range map[string]string{"A": "1", "E": "", "ODD": "", "X": "a=b", "NONE": ""} {
		got, ok := env.Lookup(name)
		if got != want || ok != (want != "") {
			t.Errorf("Lookup(%q) = %q, %v", name, got, ok)
		}
	}
}

func TestAChildInheritsAllButOurSecrets(t *testing.T) {
	t.Parallel()
	env := Env{Environ: []string{"PATH=/bin", "CONCH_PASSWORD=p", "ODD", "CONCH_TTL=5s", "CONCH_ETCD_PASSWORD=q", "ETCDCTL_USER=u",
		"ETCDCTL_PASSWORD=r", "CONCH_USER=u:geheim", "CONCH_PASSWORD_FILE=/p", "OTHER=a:b",
		"NOTIFY_SOCKET=/s", "WATCHDOG_USEC=1", "WATCHDOG_PID=2"}}
	want := []string{"PATH=/bin", "ODD", "CONCH_TTL=5s", "ETCDCTL_USER=u", "CONCH_PASSWORD_FILE=/p", "OTHER=a:b"}
	if got := env.ChildEnviron(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(env.Environ) != 13 {
		t.Error("the environment itself was changed")
	}
}

func TestProcessIsThisProcess(t *testing.T) {
	t.Parallel()
	env, end := Process()
	if env.Name == "" || len(env.Environ) == 0 || env.Signals == nil || env.Interrupted == nil || env.Stdout == nil || env.Stdin == nil {
		t.Errorf("got %+v", env)
	}
	end.Close()
	if !end.stderr.Close(flushLong) {
		t.Error("a sink without lines did not close")
	}
}
