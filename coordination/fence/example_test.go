package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-coord/coord/coordination/fence"
)

// Data in memory: the write runs alone with its key, or not at all.
func ExampleMemory() {
	var guard fence.Memory
	balance := 0
	write := func(token uint64, value int) error {
		return guard.Do(context.Background(), "balance", token, func(context.Context) error {
			balance = value
			return nil
		})
	}
	fmt.Println(write(33, 100)) // its holder is paused after this,
	fmt.Println(write(34, 200)) // a successor comes,
	fmt.Println(write(33, 101)) // and the first one wakes
	fmt.Println(balance)
	// Output:
	// <nil>
	// <nil>
	// fence: "balance": token 33 is below 34, the highest seen
	// 200
}

// Data in files: the token is kept beside it, for whatever process comes next.
func ExampleFile() {
	dir, err := os.MkdirTemp("", "fence")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	guard, err := fence.NewFile(filepath.Join(dir, "token"))
	if err != nil {
		fmt.Println(err)
		return
	}
	write := func(token uint64, text string) error {
		return guard.Do(context.Background(), token, func(context.Context) error {
			return os.WriteFile(filepath.Join(dir, "report"), []byte(text), 0o600)
		})
	}
	fmt.Println(write(34, "of the successor"))
	fmt.Println(errors.Is(write(33, "of who was paused"), &fence.ErrFenced{}))
	report, _ := os.ReadFile(filepath.Join(dir, "report"))
	token, _ := os.ReadFile(filepath.Join(dir, "token"))
	fmt.Printf("%s\n%s", report, token)
	// Output:
	// <nil>
	// true
	// of the successor
	// {"token":34}
}

// Data in a database: the check is the first statement of the transaction that writes.
func ExampleSQL() {
	guard, err := fence.NewSQL(fence.PostgreSQL, fence.SQLOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Once, as part of your migrations.
	fmt.Println(guard.Migration())

	// Each write.
	save := func(ctx context.Context, db *sql.DB, token uint64, total int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // nothing, after the commit
		if err := guard.Check(ctx, tx, "reports", token); err != nil {
			return err // a *fence.ErrFenced: somebody else is at it, leave everything as it is
		}
		if _, err := tx.ExecContext(ctx, "UPDATE reports SET total = $1", total); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = save
	// Output:
	// CREATE TABLE IF NOT EXISTS "fence_tokens" (
	//     key   text PRIMARY KEY,
	//     token bigint NOT NULL,
	//     CONSTRAINT fenced CHECK (token > 0)
	// )
}

// The rule, for a guard of your own: check and store in one step with the write.
func ExampleCheck() {
	seen := uint64(34)
	for _, token := range []uint64{33, 34, 35} {
		err := fence.Check("reports", token, seen)
		fmt.Println(token, "accepted:", err == nil)
		if err == nil {
			seen = token
		}
	}
	fmt.Println("seen:", seen)
	// Output:
	// 33 accepted: false
	// 34 accepted: true
	// 35 accepted: true
	// seen: 35
}
