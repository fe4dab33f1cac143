package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/go-coord/coord/coordination/fence"
	"github.com/go-coord/coord/test/postgres"
)

// crowd is how many write at the same time, each under a token of its own.
const crowd = 40

// serialization is PostgreSQL's word that a transaction has to be tried again.
const serialization = "40001"

// insist writes until it is known whether the token is good.
func (d *database) insist(ctx context.Context, key string, token uint64) error {
	for {
		err := d.write(ctx, key, token, func(point) {})
		var failed *pgconn.PgError
		if !errors.As(err, &failed) || failed.Code != serialization {
			return err
		}
	}
}

// storm lets a crowd write under tokens in random order, several rounds of it, and looks at what has come of it.
func storm(t *testing.T, d *database) {
	t.Helper()
	const key = "k"
	tokens := rand.Perm(crowd)
	var writers sync.WaitGroup
	failed := make(chan error, crowd)
	for _, n := range tokens {
		writers.Go(func() {
			for range 3 { // an equal token is no stranger
				err := d.insist(t.Context(), key, uint64(n+1))
				if errors.Is(err, &fence.ErrFenced{Have: uint64(n + 1)}) {
					return
				}
				if err != nil {
					failed <- fmt.Errorf("token %d: %w", n+1, err)
					return
				}
			}
		})
	}
	writers.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	history, err := d.landed(t.Context(), key)
	if err != nil || len(history) == 0 {
		t.Fatalf("history %d, %v", history, err)
	}
	if stale(history) || history[len(history)-1] != crowd {
		t.Errorf("history %d: want rising tokens, %d at last", history, crowd)
	}
	if counts := count(history); counts[crowd] != 3 {
		t.Errorf("the highest token wrote %d times, want 3", counts[crowd])
	}
}

func count(history []uint64) map[uint64]int {
	counts := map[uint64]int{}
	for _, token := range history {
		counts[token]++
	}
	return counts
}

// Red when the statement takes the token as it is, or does not lock the row: at read committed first of all.
func TestManyWritersAtOnce(t *testing.T) {
	t.Parallel()
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run("PostgreSQL at "+level.String(), func(t *testing.T) {
			t.Parallel()
			d := openPostgreSQL(t)
			d.level = level
			for range 5 {
				storm(t, d)
				if _, err := d.ExecContext(t.Context(), "TRUNCATE diary; TRUNCATE fence_tokens"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	for _, begin := range []string{"immediate", "deferred"} {
		t.Run("SQLite "+begin, func(t *testing.T) {
			t.Parallel()
			storm(t, openSQLiteAs(t, begin))
		})
	}
}

// While a lower token's transaction has passed its check, a higher token's waits at its own, however the first one ends.
func TestASuccessorsCheckWaitsForTheTransactionBeforeIt(t *testing.T) {
	t.Parallel()
	d := openPostgreSQL(t)
	for name, finish := range map[string]func(*sql.Tx) error{"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback} {
		ctx := t.Context()
		if err := d.write(ctx, name, 32, func(point) {}); err != nil {
			t.Fatal(err)
		}
		first, err := d.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.guard.Check(ctx, first, name, 33); err != nil {
			t.Fatal(err)
		}
		second, err := d.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		pid := backend(t, second)
		checked := make(chan error, 1)
		go func() { checked <- d.guard.Check(ctx, second, name, 34) }()
		for !waitsForALock(t, d, pid) { // the server says so; nobody is told
			select {
			case err := <-checked:
				t.Fatalf("%s: it did not wait: %v", name, err)
			default:
			}
		}
		if err := finish(first); err != nil {
			t.Fatal(err)
		}
		if err := <-checked; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := second.Commit(); err != nil {
			t.Error(err)
		}
		if err := d.write(ctx, name, 33, func(point) {}); !errors.Is(err, &fence.ErrFenced{Have: 33, Seen: 34}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func backend(t *testing.T, tx *sql.Tx) (pid int) {
	t.Helper()
	if err := tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

func waitsForALock(t *testing.T, d *database, pid int) (waits bool) {
	t.Helper()
	const asks = "SELECT coalesce(wait_event_type, '') = 'Lock' FROM pg_stat_activity WHERE pid = $1"
	if err := d.QueryRowContext(t.Context(), asks, pid).Scan(&waits); err != nil {
		t.Fatal(err)
	}
	return waits
}

// psqlBlock is the script of docs/fence.md.
const psqlMark = "<!-- tested: psql -->\n```sh\n"

// The recipe for psql, as it is documented, with a conch that prints what ours does.
func TestTheRecipeForPsql(t *testing.T) {
	t.Parallel()
	d := openPostgreSQL(t)
	psql, err := postgres.Program("psql")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/fence.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, found := strings.Cut(string(text), psqlMark)
	recipe, _, ended := strings.Cut(recipe, "```")
	if !found || !ended {
		t.Fatal("docs/fence.md has no recipe for psql")
	}
	var schema string
	if err := d.QueryRowContext(t.Context(), "SELECT current_schema()").Scan(&schema); err != nil {
		t.Fatal(err)
	}
	run := func(token string) (int, string) {
		cmd := exec.Command("/bin/sh", "-c", recipe)
		cmd.Env = []string{
			"PATH=" + filepath.Dir(psql) + ":" + os.Getenv("PATH"), "CONCH_NAME=reports", "CONCH_REV=" + token,
			"PGOPTIONS=-c search_path=" + schema, "DB=" + postgres.DSN(t),
		}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	if _, err := d.ExecContext(t.Context(), "CREATE TABLE reports (total int); INSERT INTO reports VALUES (0)"); err != nil {
		t.Fatal(err)
	}
	var totals []int
	for _, row := range []struct {
		token string
		good  bool
	}{{"33", true}, {"34", true}, {"33", false}, {"34", true}} {
		code, out := run(row.token)
		if (code == 0) != row.good || !row.good && !strings.Contains(out, `constraint "fenced"`) {
			t.Errorf("%s: exit code %d: %s", row.token, code, out)
		}
		var total int
		if err := d.QueryRowContext(t.Context(), "SELECT total FROM reports").Scan(&total); err != nil {
			t.Fatal(err)
		}
		totals = append(totals, total)
	}
	if !slices.Equal(totals, []int{1, 2, 2, 3}) {
		t.Errorf("totals %d: a refused script wrote", totals)
	}
}
