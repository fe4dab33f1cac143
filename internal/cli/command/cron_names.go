package command

import (
	"context"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
)

// namesMost is how many jobs or nodes are offered, or looked through for one that was mistyped.
const namesMost = 2000

// namesAt reads the names in an area that begin so. Where etcd refuses there are none.
func namesAt(ctx context.Context, client *clientv3.Client, area, begun string) (names []string) {
	got, err := client.Get(ctx, area+begun, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(namesMost))
	if err != nil {
		return nil
	}
	for _, kv := range got.Kvs {
		if name, err := record.ParseName(area, string(kv.Key)); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// completeIn gives the names in an area for the first most arguments.
func (c *call) completeIn(conn *cli.Connection, area string, most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= most || begun != "" && hold.ValidName(begun) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.completeFrom(cmd, conn, func(ctx context.Context, client *clientv3.Client) []string {
			return namesAt(ctx, client, area, begun)
		})
	}
}
