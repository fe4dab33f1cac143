package main

import (
	"strings"
	"testing"
	"time"
)

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-all", "-run", "^hold", "-timeout", "2m", "-memory", "100"})
	if err != nil || !o.all || !o.names.MatchString("hold-live") || o.timeout != 2*time.Minute || o.memory != 100 {
		t.Errorf("read as %+v: %v", o, err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"hold"}, `argument "hold"`},
		{[]string{"-run", "("}, "-run"},
		{[]string{"-timeout", "0s"}, "-timeout"},
		{[]string{"-memory", "1"}, "-memory"},
	} {
		if _, err := parse(c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want it to say %q", c.args, err, c.want)
		}
	}
}
