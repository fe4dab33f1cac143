package command

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cli/doctor"
)

const doctorLong = `Asks each endpoint by itself, measures round trips, asks for leases and permissions, lists alarms and
odd keys, prints the arithmetic of a hold with these values, and says what is wrong with how offices,
semaphores and hosts stand. It changes nothing.

Exit codes: 0 all is well, warnings included; 1 something fails; 64 usage; 69 no endpoint answers.`

// doctorFlags are the flags of "conch doctor".
type doctorFlags struct {
	cli.Connection
	plan   doctor.Plan
	output cli.Output
}

// doctor is "conch doctor".
func (c *call) doctor() *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:     "doctor [flags]",
		Short:   "Look at etcd with the eyes of a hold, and say what is wrong.",
		Long:    doctorLong,
		Example: "  conch doctor\n  conch doctor --ttl 5s -o json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd, c.env); err != nil {
				return err
			}
			if err := f.Discover(cmd.Context(), c.env); err != nil {
				return err
			}
			found, err := doctor.Visit(cmd.Context(), f.Settings, f.plan)
			if err := cli.Print(c.env.Stdout, f.print(found)); err != nil {
				return err
			}
			c.code = answer(!slices.ContainsFunc(found, func(x doctor.Finding) bool { return x.Level == doctor.Fail }))
			return err
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	cli.AddTTL(flags, &f.plan.TTL)
	f.plan.KillAfter, f.plan.Margin = coord.DefaultGrace, coord.DefaultMargin
	flags.Var(cli.Duration(&f.plan.KillAfter, "a duration above 0, such as 5s", cli.Positive), "kill-after", "the --kill-after to judge by")
	flags.Var(cli.Duration(&f.plan.Margin, "a duration above 0, such as 500ms", cli.Positive), "kill-margin", "the --kill-margin to judge by")
	f.output.AddFlags(flags, "how to print")
	f.AddFlags(flags)
	completeWords(cmd)
	return cmd
}

func (f *doctorFlags) check(cmd *cobra.Command, env cli.Env) error {
	if err := f.Bind(cmd.Flags(), env); err != nil {
		return err
	}
	return checkBounds(f.plan.TTL, f.plan.Margin, f.plan.KillAfter)
}

// checkBounds refuses values that no hold can have.
func checkBounds(ttl, margin, killAfter time.Duration) error {
	if _, err := coord.NewBounds(ttl, margin, killAfter); err != nil {
		return cli.Usagef("--kill-margin %v: want less than %v with --ttl %v", margin, ttl*55/100, ttl)
	}
	return nil
}

// print is what was found, one a line.
func (f *doctorFlags) print(found []doctor.Finding) []byte {
	var out bytes.Buffer
	if f.output.JSON() {
		for _, one := range found {
			out.Write(cli.JSONLine(one))
		}
		return out.Bytes()
	}
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, one := range found {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", one.Level, one.Check, dash(column(one.Target)), one.Text)
	}
	_ = t.Flush()
	return out.Bytes()
}

// columnMost is how wide a target makes the table, in bytes; what is longer is whole in JSON.
const columnMost = 100

func column(target string) string {
	if len(target) <= columnMost {
		return target
	}
	return strings.ToValidUTF8(target[:columnMost], "") + "..."
}
