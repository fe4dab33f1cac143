package command

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

func TestEveryQuestionFindsItsEndpointsByDomain(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"elect", "x", "--who"}, {"elect", "x", "--watch"}, {"elect", "x", "--assert"}, {"sema", "x", "--who"}, {"status"}, {"status", "--watch"}, {"__complete", "elect", ""}} {
		s, asked := newShell("CONCH_DISCOVERY_SRV=example.com"), make(chan string, 9)
		code := Main(t.Context(), cli.Env{
			Name: "conch", Args: args, Environ: s.environ, Stdout: &s.stdout, Stderr: &s.stderr,
			Signals: func() (<-chan os.Signal, func()) { return s.signals, func() {} },
			LookupSRV: func(_ context.Context, _, _, name string) (string, []*net.SRV, error) {
				asked <- name
				return "", nil, errors.New("no such domain")
			},
		})
		want := hold.CodeUnreachable
		if args[0] == "__complete" {
			want = hold.CodeOK // nothing is offered, and nothing said
		}
		if code != want || <-asked != "example.com" {
			t.Errorf("%q: code %d, %s", args, code, s.stderr.String())
		}
	}
}
