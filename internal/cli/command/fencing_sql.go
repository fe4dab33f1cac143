package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/go-coord/coord/coordination/fence"
	"github.com/go-coord/coord/internal/cli"
)

const fenceSQLLong = `The first statement makes the table, once. The second goes before the writes of each transaction: it fails
where the token is below the highest seen, and nobody else's check of that key ends before the transaction
does. It is for the database that holds what is written.`

// fenceSQL is "conch fence sql".
func (c *call) fenceSQL() *cobra.Command {
	var dialect, table string
	cmd := &cobra.Command{
		Use:     "sql [flags]",
		Short:   "Print the table and the statement that check tokens in a database.",
		Long:    fenceSQLLong,
		Example: "  conch fence sql\n  conch fence sql --dialect sqlite --table tokens",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			guard, err := fence.NewSQL(fence.Dialect(dialect), fence.SQLOptions{Table: table})
			if err != nil || table == "" {
				return cli.Usagef("--table %s: want lower-case letters, digits and '_', at most 63, no digit first, "+
					"with or without a schema before a dot", cli.Quote(table))
			}
			return cli.Print(c.env.Stdout, []byte(fenceSQLText(guard, fence.Dialect(dialect))))
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(cli.Choice(&dialect, string(fence.PostgreSQL), string(fence.SQLite)), "dialect", "whose SQL")
	flags.StringVar(&table, "table", fence.DefaultTable, "the table that keeps the tokens")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	completeWords(cmd)
	return cmd
}

// fenceSQLText is what is printed: SQL with comments, to be pasted or fed to a shell.
func fenceSQLText(guard *fence.SQL, d fence.Dialect) string {
	parameters := "$1 is the key, $2 the token. In psql, with -v key=... -v token=..., write :'key' and :'token'."
	if d == fence.SQLite {
		parameters = "?1 is the key, ?2 the token. The sqlite3 shell takes them from .parameter set."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- Once: a row for each key, with the highest token seen.\n%s;\n\n", guard.Migration())
	fmt.Fprintf(&b, "-- In each transaction, before it writes. %s\n", parameters)
	fmt.Fprintf(&b, "-- A token below the highest seen violates the constraint \"fenced\": roll back then.\n%s;\n", guard.Statement())
	return b.String()
}
