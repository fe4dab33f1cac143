package hold_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-coord/coord/internal/hold"
)

var lost = hold.Status{
	Outcome: hold.ResultLost, Code: 70, Rev: 12, Lease: 0x694d8a3c1f2e0011,
	Waited: 1500 * time.Millisecond, Held: time.Minute, Reason: "key gone\x1b[2J",
}

const lostLine = `{"outcome":"lost","code":70,"rev":12,"lease":"694d8a3c1f2e0011","waited_ms":1500,"held_ms":60000,"reason":"key gone\\x1b[2J"}` + "\n"

func TestWriteStatusWritesOneObject(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "status")
	for _, tt := range []struct {
		status hold.Status
		want   string
	}{
		{lost, lostLine},
		// A second one replaces the first, and fields without a value are there all the same.
		{hold.Status{Outcome: hold.ResultNotAcquired, Code: 75},
			`{"outcome":"not-acquired","code":75,"rev":0,"lease":"","waited_ms":0,"held_ms":0,"reason":""}` + "\n"},
	} {
		if err := hold.WriteStatus(path, tt.status); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != tt.want {
			t.Errorf("the file holds %s, %v, want %s", got, err, tt.want)
		}
	}
	onlyFile(t, filepath.Dir(path), "status")
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm()&^0o644 != 0 || fi.Mode().Perm()&0o600 != 0o600 {
		t.Errorf("mode %v, %v, want 0644 or less", fi.Mode(), err)
	}
}

// onlyFile checks that nothing but the named files is in dir: no temporary file stays behind.
func onlyFile(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(names) {
		t.Fatalf("%d files in %s, %v, want %v", len(entries), dir, err, names)
	}
	for i, e := range entries {
		if e.Name() != names[i] {
			t.Errorf("file %s, want %s", e.Name(), names[i])
		}
	}
}

func TestWriteStatusReplacesNothingButFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		make func(path string) error
	}{
		{"a link is not followed, nor replaced", func(p string) error {
			return os.Symlink(filepath.Join(filepath.Dir(p), "zz-elsewhere"), p)
		}},
		{"a folder", func(p string) error { return os.Mkdir(p, 0o755) }},
		{"a folder that is not there", func(p string) error { return os.Remove(filepath.Dir(p)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "d")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "status")
			if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			err := hold.WriteStatus(path, lost)
			if err == nil || !strings.HasPrefix(err.Error(), "write status file: ") {
				t.Fatalf("err = %v", err)
			}
			if _, err := os.Lstat(dir); err == nil {
				onlyFile(t, dir, "status")
			}
		})
	}
}

func TestWriteStatusNeverWritesThroughAFileOfAnotherName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, twin := filepath.Join(dir, "status"), filepath.Join(dir, "twin")
	if err := os.WriteFile(twin, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(twin, path); err != nil {
		t.Fatal(err)
	}
	if err := hold.WriteStatus(path, lost); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(twin); err != nil || string(got) != "precious" {
		t.Errorf("the other name now holds %q, %v", got, err)
	}
}

func TestAStatusFileIsCheckedWithoutATrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{
		filepath.Join(dir, "new"): true, old: true, dir: false, filepath.Join(dir, "no", "such"): false, filepath.Join(old, "x"): false,
	} {
		if err := hold.CheckStatusFile(path); (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}
