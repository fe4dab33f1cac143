package command

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-coord/coord/internal/cli"
)

// topics are what can be read about that is no command. The variables are those of the flags of commands.
func (c *call) topics(commands ...*cobra.Command) []*cobra.Command {
	environment := &cobra.Command{Use: "environment", Short: "What the environment says, and what a child sees in it."}
	environment.SetHelpFunc(func(cmd *cobra.Command, args []string) { // made when it is read: each run has topics
		cmd.Long = environmentText(commands)
		c.help(cmd, args)
	})
	return []*cobra.Command{{Use: "exit-codes", Short: "What the exit codes mean.", Long: exitCodesText}, environment}
}

const exitCodesText = `Of a command that runs CMD:

  CMD's own  it ran to its end while held; 128+n if signal n ended it
  64         usage: a flag, value or name that makes no sense, or no CMD; nothing was contacted
  69         etcd cannot be reached, no session could be made, or no guard could be started
  70         the hold was lost while CMD ran, or its holder was asked to leave; CMD was ended
  71         --fence-on-lose: on-lose did not succeed, and the hold was left to its TTL
  75         not acquired: --nonblock, --wait ran out, on-acquire failed, another --max is in use, or another process
             has the UUID
  76         conch fence: the token is below the highest seen; CMD was not started
  77         etcd refused for want of permission
  126        CMD was found and cannot be executed; nothing was acquired
  127        CMD was not found; nothing was acquired
  128+n      signal n came while waiting; CMD was not started

CMD may itself exit with one of these numbers: --status-file tells the two apart.

Of a question (--who, --assert, status, hosts, doctor; fence check says 76 for no):

  0          yes; somebody leads, holds or waits; a host is up
  1          no; nobody does; none is
  64, 77     as above
  69         etcd cannot say: a question is never answered from old knowledge
  74         what there is to say could not be printed; of version, help and completion too

Of conch cron:

  0          done; of a question: there is something; of run --wait: it ended with success
  1          there is no such job, run or result; it was refused; of run --wait: it ended otherwise
  64, 69, 77 as above
  75         the job or the cluster is paused; no node is there, or has taken what was waited for
  128+n      signal n came while waiting; a request stays

Of conch evict:

  0          the holder has left, and who holds next was named
  1          nobody was asked: nobody holds, or not whom you meant
  64, 77     as above
  69         etcd cannot be reached
  75         --wait ran out; the request stays
  128+n      signal n came while waiting; the request stays

Of conch cron, about jobs:

  0          done
  1          there is no such job, or what was asked for is refused
  64, 69,    as above
  74, 77

--watch ends with 128+n by signal n, and with 0 when nobody reads its output any more.`

const environmentHead = `A flag counts more than its variable. One that is set and empty counts as not set. Flags that act on a single
run have no variable: an outer wrapper's would act on an inner one.

`

const environmentTail = `
What CMD sees, in place of what it would inherit:

  CONCH_NAME   what is held
  CONCH_REV    the fencing token: it rises with each hold
  CONCH_LEASE  the lease in etcd, hexadecimal
  CONCH_SLOT   of conch sema: the slot, a number from 0 to N-1
  CONCH_RUN    marks the descendants of this run: leave it alone

Hooks see these too, and CONCH_HOOK, which is on-acquire or on-lose, and CONCH_HELD, yes or no.

PATH is where CMD is looked for. NO_COLOR needs no setting: nothing is printed in colours.`

// environmentText lists each variable with the flag that it stands in for.
func environmentText(commands []*cobra.Command) string {
	var b strings.Builder
	b.WriteString(environmentHead)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	seen := map[string]bool{}
	for _, cmd := range commands {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if variables := cli.Variables(f); len(variables) > 0 && !seen[f.Name] {
				seen[f.Name] = true
				fmt.Fprintf(table, "  %s\t--%s\n", strings.Join(variables, ", else "), f.Name)
			}
		})
	}
	_ = table.Flush() // into memory
	b.WriteString(environmentTail)
	return b.String()
}
