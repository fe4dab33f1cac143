package fence

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"github.com/go-coord/coord/coordination/fence"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/postgres"
)

// database is a table to which each write adds a row, in a transaction of its own, behind a guard or behind none.
type database struct {
	*sql.DB
	guard  *fence.SQL
	insert string
	list   string
	free   bool // of the guard
	level  sql.IsolationLevel
}

const (
	diaryTable = "CREATE TABLE diary (id %, key text NOT NULL, token bigint NOT NULL)"
	insertRow  = "INSERT INTO diary (key, token) VALUES ($1, $2)"
	listRows   = "SELECT token FROM diary WHERE key = $1 ORDER BY id"
)

func newDatabase(t *testing.T, db *sql.DB, d fence.Dialect, serial string) *database {
	t.Helper()
	guard, err := fence.NewSQL(d, fence.SQLOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Twice: a migration that was applied changes nothing.
	for _, statement := range []string{guard.Migration(), guard.Migration(), strings.ReplaceAll(diaryTable, "%", serial)} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return &database{DB: db, guard: guard, insert: insertRow, list: listRows}
}

// openPostgreSQL gives a schema of the server to a test.
func openPostgreSQL(t *testing.T) *database {
	t.Helper()
	schema := strings.ReplaceAll(etcdtest.Office(t), "-", "_")
	return newDatabase(t, postgres.Open(t, schema), fence.PostgreSQL, "bigserial PRIMARY KEY")
}

// openSQLite gives a file to a test. It waits for others' transactions, and never for the disk.
func openSQLite(t *testing.T) *database { return openSQLiteAs(t, "immediate") }

// openSQLiteAs is the same with transactions that begin as BEGIN IMMEDIATE, or DEFERRED, does.
func openSQLiteAs(t *testing.T, begin string) *database {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(quickDir(t), "db")+
		"?_txlock="+begin+"&_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	d := newDatabase(t, db, fence.SQLite, "INTEGER PRIMARY KEY AUTOINCREMENT")
	d.insert, d.list = strings.ReplaceAll(insertRow, "$", "?"), strings.ReplaceAll(listRows, "$", "?")
	return d
}

func newSQLite(t *testing.T, guarded bool) target {
	d := openSQLite(t)
	d.free = !guarded
	return d
}

func newPostgreSQL(t *testing.T, guarded bool) target {
	d := openPostgreSQL(t)
	d.free = !guarded
	return d
}

func (d *database) write(ctx context.Context, key string, token uint64, at pause) error {
	at(before)
	tx, err := d.BeginTx(ctx, &sql.TxOptions{Isolation: d.level})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if !d.free {
		if err := d.guard.Check(ctx, tx, key, token); err != nil {
			return err
		}
	}
	at(inside)
	if _, err := tx.ExecContext(ctx, d.insert, key, int64(token)); err != nil {
		return err
	}
	at(after)
	return tx.Commit()
}

func (d *database) landed(ctx context.Context, key string) (all []uint64, err error) {
	rows, err := d.QueryContext(ctx, d.list, key)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var token int64
		if err := rows.Scan(&token); err != nil {
			return nil, err
		}
		all = append(all, uint64(token))
	}
	return all, rows.Err()
}

// databases are those that SQL is for.
var databases = map[string]func(t *testing.T) *database{"SQLite": openSQLite, "PostgreSQL": openPostgreSQL}

// eachDatabase runs a test for both.
func eachDatabase(t *testing.T, test func(t *testing.T, d *database)) {
	t.Helper()
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func TestADatabaseRefusesLowerAndAcceptsEqual(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, d *database) {
		for _, row := range []struct {
			key   string
			token uint64
			want  error
		}{
			{"a", 33, nil}, {"a", 33, nil}, {"a", 32, &fence.ErrFenced{Key: "a", Have: 32, Seen: 33}}, {"a", 34, nil},
			{"b", 5, nil}, {"a", 33, &fence.ErrFenced{Key: "a", Have: 33, Seen: 34}}, {"b", 4, &fence.ErrFenced{Key: "b", Have: 4, Seen: 5}},
			{"a", 1<<63 - 1, nil}, {"a", 1 << 63, fence.ErrInvalid}, {"a", 34, &fence.ErrFenced{Seen: 1<<63 - 1}}, {"ä'\"; --", 7, nil},
			{"ä'\"; --", 6, &fence.ErrFenced{Key: "ä'\"; --"}},
		} {
			if err := d.write(t.Context(), row.key, row.token, func(point) {}); !errors.Is(err, row.want) {
				t.Errorf("%q, %d: %v, want %v", row.key, row.token, err, row.want)
			}
		}
		if got, err := d.landed(t.Context(), "a"); len(got) != 4 || err != nil {
			t.Errorf("landed %d, %v", got, err)
		}
	})
}

// A token is seen with what was written under it, or not at all.
func TestATokenThatIsRolledBackWasNotSeen(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, d *database) {
		tx, err := d.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.guard.Check(t.Context(), tx, "k", 34); err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := d.write(t.Context(), "k", 33, func(point) {}); err != nil {
			t.Error(err)
		}
	})
}

// The statement for whoever writes SQL by hand fails by itself, and changes nothing.
func TestTheStatementFailsByItself(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, d *database) {
		for _, row := range []struct {
			token int64
			fails bool
		}{{33, false}, {33, false}, {34, false}, {33, true}, {34, false}, {0, true}, {-1, true}} {
			_, err := d.ExecContext(t.Context(), d.guard.Statement(), "k", row.token)
			if (err != nil) != row.fails || err != nil && !strings.Contains(err.Error(), "fenced") {
				t.Errorf("%d: %v", row.token, err)
			}
		}
		// It speaks of the same row as Check does.
		if err := d.write(t.Context(), "k", 33, func(point) {}); !errors.Is(err, &fence.ErrFenced{Seen: 34}) {
			t.Error(err)
		}
	})
}

// Nothing but a token can stand in the table.
func TestTheTableTakesTokensOnly(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, d *database) {
		for _, values := range []string{"'k', 0", "'k', -5", "'k', NULL", "NULL, 5", "'k', 'x'", "'k', 1e30"} {
			if _, err := d.ExecContext(t.Context(), "INSERT INTO fence_tokens VALUES ("+values+")"); err == nil {
				t.Errorf("%s was taken", values)
			}
		}
	})
}
