package embed

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestDefaultDir(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ xdg, home, want string }{
		{"/x", "/h", "/x/conch-dev"},
		{"", "/h", "/h/.local/state/conch-dev"},
		{"relative", "/h", "/h/.local/state/conch-dev"},
		{"", "", ""},
	} {
		got, err := DefaultDir(func(name string) string {
			return map[string]string{"XDG_STATE_HOME": tt.xdg, "HOME": tt.home}[name]
		})
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("XDG_STATE_HOME=%q HOME=%q: got %q, %v, want %q", tt.xdg, tt.home, got, err, tt.want)
		}
	}
}

func TestNewer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"3.7.3", "3.7.3", false}, {"3.7.9", "3.7.3", false}, {"3.8.0", "3.7.3", true}, {"4.0.0", "3.7.3", true},
		{"3.6.1", "3.7.3", false}, {"", "3.7.3", false}, {"junk", "3.7.3", false}, {"3.10.0", "3.9.0", true}, {"3.7", "x", false},
	} {
		if got := newer(tt.a, tt.b); got != tt.want {
			t.Errorf("newer(%q, %q) = %v", tt.a, tt.b, got)
		}
	}
}

func TestStateDirectoryMustBePrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := state(dir).create(); !errors.Is(err, ErrNotPrivate) {
		t.Fatalf("got %v, want ErrNotPrivate", err)
	}
	if err := state("/dev/null/x").create(); err == nil {
		t.Fatal("a directory below a file was made")
	}
}

func TestOnlyOneHasTheLock(t *testing.T) {
	t.Parallel()
	st := state(t.TempDir())
	f, err := st.lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.lock(); !errors.Is(err, errLocked) {
		t.Fatalf("got %v, want errLocked", err)
	}
	f.Close()
	if f, err = st.lock(); err != nil {
		t.Fatalf("a closed lock is still held: %v", err)
	}
	f.Close()
}

func TestRecord(t *testing.T) {
	t.Parallel()
	st := state(t.TempDir())
	for _, junk := range []string{"", "{", "null", `{"pid":1}`, "\x00"} {
		if err := os.WriteFile(st.path("member.json"), []byte(junk), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, ok := st.read(); ok {
			t.Errorf("%q was read as %+v", junk, r)
		}
	}
	want := record{PID: 7, Endpoint: "unix:///x"}
	if err := st.write(want); err != nil {
		t.Fatal(err)
	}
	if got, ok := st.read(); !ok || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDataThatTwiceDidNotOpenIsMovedAside(t *testing.T) {
	t.Parallel()
	st := state(t.TempDir())
	keep := filepath.Join(st.path("data"), "keep")
	if err := os.MkdirAll(keep, 0o700); err != nil {
		t.Fatal(err)
	}
	// A start that becomes ready sets the count back.
	for i, wantMoved := range []bool{false, false, true, false} {
		moved, err := st.begin()
		if err != nil || moved != wantMoved {
			t.Fatalf("start %d: moved %v, %v", i+1, moved, err)
		}
	}
	if _, err := os.Stat(filepath.Join(st.path("data.broken"), "keep")); err != nil {
		t.Fatal(err)
	}
	if err := st.ready(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if moved, err := st.begin(); err != nil || moved {
			t.Fatalf("moved %v, %v", moved, err)
		}
	}
}

func TestLogIsEmptiedWhenLarge(t *testing.T) {
	t.Parallel()
	st := state(t.TempDir())
	for _, tt := range []struct{ before, after int64 }{{10, 10}, {2 << 20, 0}} {
		if err := os.WriteFile(st.path("log"), make([]byte, tt.before), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := st.log()
		if err != nil {
			t.Fatal(err)
		}
		if info, err := f.Stat(); err != nil || info.Size() != tt.after {
			t.Errorf("a log of %d bytes is opened with %d", tt.before, info.Size())
		}
		f.Close()
	}
}
