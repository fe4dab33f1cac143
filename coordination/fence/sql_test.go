package fence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"
)

// The SQL itself is proven on real databases, in test/fence. Here is what stands around it.

var errDatabase = errors.New("the database is away")

// rows is a database of one table that knows one statement: the guard's upsert. Its transactions do not matter here.
type rows struct {
	tokens map[string]int64
	asked  string // the last statement
	fails  error
}

func (d *rows) Connect(context.Context) (driver.Conn, error) { return d, nil }
func (d *rows) Driver() driver.Driver                        { return nil }
func (d *rows) Prepare(string) (driver.Stmt, error)          { return nil, errDatabase }
func (d *rows) Close() error                                 { return nil }
func (d *rows) Begin() (driver.Tx, error)                    { return d, nil }
func (d *rows) Commit() error                                { return nil }
func (d *rows) Rollback() error                              { return nil }

func (d *rows) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	d.asked = query
	if d.fails != nil {
		return nil, d.fails
	}
	key, token := args[0].Value.(string), args[1].Value.(int64)
	d.tokens[key] = max(d.tokens[key], token)
	return &row{value: d.tokens[key]}, nil
}

type row struct {
	value int64
	read  bool
}

func (r *row) Columns() []string { return []string{"token"} }
func (r *row) Close() error      { return nil }
func (r *row) Next(dest []driver.Value) error {
	if r.read {
		return io.EOF
	}
	dest[0], r.read = r.value, true
	return nil
}

func TestACheckInATransaction(t *testing.T) {
	t.Parallel()
	d := &rows{tokens: map[string]int64{}}
	db := sql.OpenDB(d)
	defer db.Close()
	s, err := NewSQL(PostgreSQL, SQLOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check := func(key string, token uint64) error {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		return s.Check(t.Context(), tx, key, token)
	}
	for _, row := range []struct {
		key   string
		token uint64
		want  error
		asks  bool
	}{
		{"k", 33, nil, true},
		{"k", 33, nil, true},
		{"k", 32, &ErrFenced{Key: "k", Have: 32, Seen: 33}, true},
		{"k", 1<<63 - 1, nil, true},
		{"k", 33, &ErrFenced{Key: "k", Have: 33, Seen: 1<<63 - 1}, true},
		{"k", 1 << 63, ErrInvalid, false},
		{"k", 0, ErrInvalid, false},
		{"", 1, ErrInvalid, false},
		{"l", 1, nil, true},
	} {
		d.asked = ""
		if err := check(row.key, row.token); !errors.Is(err, row.want) || (d.asked != "") != row.asks {
			t.Errorf("%q, %d: %v, want %v; asked %q", row.key, row.token, err, row.want, d.asked)
		}
	}
	d.fails = errDatabase
	if err := check("k", 34); !errors.Is(err, errDatabase) || errors.Is(err, &ErrFenced{}) {
		t.Errorf("%v", err)
	}
}

func TestWhatATableMayBeCalled(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 63)
	for name, quoted := range map[string]string{
		"": `"fence_tokens"`, "order": `"order"`, "app.tokens_2": `"app"."tokens_2"`, "_": `"_"`, long: `"` + long + `"`,
	} {
		for _, d := range []Dialect{PostgreSQL, SQLite} {
			s, err := NewSQL(d, SQLOptions{Table: name})
			if err != nil {
				t.Errorf("%q: %v", name, err)
				continue
			}
			for _, text := range []string{s.Migration(), s.Statement(), s.upsert} {
				if !strings.Contains(text, " "+quoted+" ") {
					t.Errorf("%q: %s", name, text)
				}
			}
		}
	}
	for _, name := range []string{"Tokens", "2x", "a b", "a;b", `a"b`, "a.b.c", "a.", ".a", ".", "a-b", "ä", long + "x", "a\x00", "a\n"} {
		if s, err := NewSQL(SQLite, SQLOptions{Table: name}); err == nil {
			t.Errorf("%q: %s", name, s.table)
		}
	}
	for _, d := range []Dialect{"", "mysql", "Postgres"} {
		if _, err := NewSQL(d, SQLOptions{}); err == nil || !strings.Contains(err.Error(), "postgres or sqlite") {
			t.Errorf("%q: %v", d, err)
		}
	}
}
