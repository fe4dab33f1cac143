package fence

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
)

// Dialect is the SQL that a database speaks.
type Dialect string

// The dialects that are known.
const (
	PostgreSQL Dialect = "postgres" // 9.5 or newer
	SQLite     Dialect = "sqlite"   // 3.35 or newer
)

// DefaultTable is the table of a guard whose options name none.
const DefaultTable = "fence_tokens"

// SQLOptions configure a [SQL].
type SQLOptions struct {
	// Table is where tokens are kept, a schema may stand before it: lower-case letters, digits and '_', the first no digit,
	// at most 63 of them. Default DefaultTable.
	Table string
}

// SQL guards what is written to a database, in the transaction that writes it: token and data become visible together or
// not at all. It is safe for concurrent use.
//
// Its table has a row for each key and is made by [SQL.Migration], which is yours to read and to run. [SQL.Check] is one
// statement: it raises the row to the token, unless that is lower, and keeps the row locked until the transaction ends.
//
//	tx A  token 33   check: row 33, locked ── writes ── COMMIT
//	tx B  token 34   check: waits for A ───────────────────────▶ row 34, locked ── writes ── COMMIT
//	tx C  token 33                                                 check: waits for B ──────────────▶ 33 < 34: fenced
//
// So B's writes come after A's, or A's never come; and none of a lower token comes after B's. PostgreSQL does so at any
// level of isolation: at read committed, its default, the statement looks at the row as it is when the lock is got;
// above that it may fail with a serialization error instead (40001), and the transaction is to be tried again. SQLite lets one
// transaction write at a time. There, and above read committed, let the check be the first statement of the
// transaction, or what was read before it may be too old to write by: then the database refuses (SQLITE_BUSY, 40001).
//
// A transaction that is paused with the row locked holds up its successors: bound that (in PostgreSQL by
// idle_in_transaction_session_timeout). Of several keys in one transaction, take them in one order everywhere.
type SQL struct {
	dialect Dialect
	table   string // quoted
	upsert  string
}

// tableName is one part of the name of a table: what PostgreSQL keeps as it is, and quoting changes nothing about.
var tableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`) })

// NewSQL makes a guard. It asks no database.
func NewSQL(d Dialect, o SQLOptions) (*SQL, error) {
	if d != PostgreSQL && d != SQLite {
		return nil, fmt.Errorf("fence: dialect %q: want %s or %s", string(d), PostgreSQL, SQLite)
	}
	name := cmp.Or(o.Table, DefaultTable)
	parts := strings.Split(name, ".")
	for _, part := range parts {
		if len(parts) > 2 || !tableName().MatchString(part) {
			return nil, fmt.Errorf("fence: table %q: want lower-case letters, digits and '_', at most 63, no digit first, "+
				"with or without a schema before a dot", name)
		}
	}
	s := &SQL{dialect: d, table: `"` + strings.Join(parts, `"."`) + `"`}
	s.upsert = s.insert(s.greatest()) + "\nRETURNING token"
	return s, nil
}

// Check accepts token for key in tx, or refuses it with an *[ErrFenced]; then, and after any other error, roll tx back.
// After nil nobody else's check of key ends before tx does: write, and commit. Tokens above 1<<63 - 1 are ErrInvalid.
func (s *SQL) Check(ctx context.Context, tx *sql.Tx, key string, token uint64) error {
	if err := Check(key, token, 0); err != nil {
		return err
	}
	if token > math.MaxInt64 {
		return fmt.Errorf("%w: token %d for %q is larger than a bigint", ErrInvalid, token, key)
	}
	// The row has the greater of the two now. If that is not ours, the transaction has to end; nothing was lowered.
	var seen int64
	if err := tx.QueryRowContext(ctx, s.upsert, key, int64(token)).Scan(&seen); err != nil {
		return fmt.Errorf("check token of %q: %w", key, err)
	}
	return Check(key, token, uint64(seen))
}

// Migration is the statement that makes the table, where it is not there yet.
func (s *SQL) Migration() string {
	text, whole := "text", "bigint"
	valid := "token > 0"
	if s.dialect == SQLite {
		text, whole = "TEXT NOT NULL", "INTEGER"
		valid = "typeof(token) = 'integer' AND " + valid // a column there takes anything
	}
	return "CREATE TABLE IF NOT EXISTS " + s.table + ` (
    key   ` + text + ` PRIMARY KEY,
    token ` + whole + ` NOT NULL,
    CONSTRAINT fenced CHECK (` + valid + `)
)`
}

// Statement is the check for whoever writes SQL by hand, with the key as its first parameter and the token as its
// second. It fails by itself where the token is below the highest seen: the constraint "fenced" is violated. PostgreSQL then takes
// nothing more in that transaction; in SQLite roll it back.
func (s *SQL) Statement() string {
	return s.insert("CASE WHEN f.token <= excluded.token THEN excluded.token ELSE -f.token END")
}

// insert puts a row, or sets the token of the one that is there: in both dialects the only way to do either and to be
// alone with the row from then on.
func (s *SQL) insert(set string) string {
	first, second := s.parameters()
	return "INSERT INTO " + s.table + " AS f (key, token) VALUES (" + first + ", " + second + `)
ON CONFLICT (key) DO UPDATE SET token = ` + set
}

func (s *SQL) parameters() (first, second string) {
	if s.dialect == SQLite {
		return "?1", "?2"
	}
	return "$1", "$2"
}

func (s *SQL) greatest() string {
	if s.dialect == SQLite {
		return "max(f.token, excluded.token)"
	}
	return "greatest(f.token, excluded.token)"
}
