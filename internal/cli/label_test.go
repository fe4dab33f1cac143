package cli

import (
	"fmt"
	"testing"

	"github.com/spf13/pflag"
)

func TestLabelsAreCollected(t *testing.T) {
	t.Parallel()
	var got map[string]string
	flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
	flags.Var(Labels(&got), "label", "")
	if err := flags.Parse([]string{"--label", "zone=b=c", "--label=rack="}); err != nil || fmt.Sprint(got) != "map[rack: zone:b=c]" {
		t.Error(got, err)
	}
	if f := flags.Lookup("label"); f.Value.String() != "rack=,zone=b=c" || f.Value.Type() != "KEY=VALUE" || (labels{}).String() != "" {
		t.Error(f.Value)
	}
	for _, bad := range []string{"rack", "=b", "", "rack=twice"} {
		if err := flags.Parse([]string{"--label", bad}); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
