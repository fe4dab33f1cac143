package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // PostgreSQL
	_ "modernc.org/sqlite"

	"github.com/go-coord/coord/coordination/fence"
)

// database is where the report is written. It goes to the holders as JSON, in their environment.
type database struct {
	Name    string
	Driver  string
	DSN     string
	Dialect fence.Dialect
	Schema  string
	Update  string // of the report
}

func sqlite(path string) database {
	return database{
		Name: "SQLite", Driver: "sqlite", Dialect: fence.SQLite, Schema: "main", Update: "UPDATE main.report SET body = ?1",
		DSN: "file:" + path + "?_txlock=immediate&_pragma=busy_timeout(10000)",
	}
}

func postgres(dsn string) database {
	schema := "fencing_example_" + strings.ToLower(rand.Text()[:8])
	return database{
		Name: "PostgreSQL", Driver: "pgx", Dialect: fence.PostgreSQL, Schema: schema, Update: "UPDATE " + schema + ".report SET body = $1",
		DSN: dsn,
	}
}

func (d database) guard() (*fence.SQL, error) {
	return fence.NewSQL(d.Dialect, fence.SQLOptions{Table: d.Schema + ".fence_tokens"})
}

// create makes what the story needs; remove takes it away.
func (d database) create(ctx context.Context, db *sql.DB) error {
	guard, err := d.guard()
	if err != nil {
		return err
	}
	statements := []string{"CREATE TABLE " + d.Schema + ".report (body text)", "INSERT INTO " + d.Schema + ".report VALUES ('')", guard.Migration()}
	if d.Dialect == fence.PostgreSQL {
		statements = append([]string{"CREATE SCHEMA " + d.Schema}, statements...)
	}
	return execute(ctx, db, statements)
}

func (d database) remove(ctx context.Context, db *sql.DB) error {
	if d.Dialect == fence.PostgreSQL {
		return execute(ctx, db, []string{"DROP SCHEMA " + d.Schema + " CASCADE"})
	}
	return execute(ctx, db, []string{"DROP TABLE main.report", "DROP TABLE main.fence_tokens"})
}

func execute(ctx context.Context, db *sql.DB, statements []string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// report reads what was written.
func (d database) report(ctx context.Context, db *sql.DB) (body string, err error) {
	err = db.QueryRowContext(ctx, "SELECT body FROM "+d.Schema+".report").Scan(&body)
	return body, err
}

// write is what a holder does: the check and the write in one transaction, or the write alone.
func (d database) write(ctx context.Context, db *sql.DB, guarded bool, token uint64, body string) error {
	guard, err := d.guard()
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if guarded {
		err = guard.Check(ctx, tx, "report", token)
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, d.Update, body)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
