package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-coord/coord/internal/etcd/embed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// This program is the holders too, each a process of its own.
	run := direct
	if len(os.Args) > 1 && os.Args[1] == holderRole {
		run = hold
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fencing:", err)
		os.Exit(1)
	}
}

// direct tells the story on each database.
func direct(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "fencing")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	etcd, err := embed.Start(ctx, embed.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		return err
	}
	defer etcd.Close()
	fmt.Println("etcd: a member inside this process")

	all := []database{sqlite(filepath.Join(dir, "reports.db"))}
	if dsn := os.Getenv("FENCING_POSTGRES"); dsn != "" {
		all = append(all, postgres(dsn))
	} else {
		fmt.Println("PostgreSQL: none, FENCING_POSTGRES is not set")
	}
	for _, db := range all {
		for _, guarded := range []bool{false, true} {
			if err := tell(ctx, story{etcd.Endpoint(), db, guarded}); err != nil {
				return errors.Join(fmt.Errorf("on %s", db.Name), err)
			}
		}
	}
	fmt.Println("\nA lock says who should write. Who is written to says who may.")
	return nil
}
