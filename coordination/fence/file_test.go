package fence

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// newGuard is a guard at a file of its own, which is not there yet.
func newGuard(t *testing.T) (*File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	f, err := NewFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return f, path
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func nothing(context.Context) error { return nil }

func TestTheFileHoldsTheHighestToken(t *testing.T) {
	t.Parallel()
	f, path := newGuard(t)
	if seen, err := f.Seen(); seen != 0 || err != nil {
		t.Errorf("%d, %v before anything was seen", seen, err)
	}
	put(t, path+newSuffix, "left by a crash")
	for _, token := range []uint64{33, 1<<64 - 1} {
		err := f.Do(t.Context(), token, func(context.Context) error {
			if seen, err := f.Seen(); seen != token || err != nil {
				t.Errorf("%d, %v while the write of %d runs", seen, err, token)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if want := `{"token":18446744073709551615}` + "\n"; string(text) != want || err != nil {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
	// Another process comes later.
	again, _ := NewFile(path)
	if err := again.Do(t.Context(), 34, nothing); !errors.Is(err, &ErrFenced{Key: path, Have: 34, Seen: 1<<64 - 1}) {
		t.Errorf("%v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v: want the token and its lock", entries, err)
	}
	if info, err := os.Stat(path + lockSuffix); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: who may open the lock can hold everybody up", info, err)
	}
}

func TestADamagedFileIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "\n", "33", "33\n", `{"token":33}`, `{"token":0}` + "\n", `{"token":-1}` + "\n", `{"token":33` + "\n", `{"token":033}` + "\n",
		`{"token":3.3e1}` + "\n", `{"token":"33"}` + "\n", `{"token":18446744073709551616}` + "\n", `{"token": 33}` + "\n",
		`{"token":33}` + "\n\n", `{"token":33,"x":1}` + "\n", `{"Token":33}` + "\n", `{"token":33}` + "\n" + `{"token":34}` + "\n",
		strings.Repeat("\x00", 14), strings.Repeat("3", 1000), `{"token":33,"token":34}` + "\n", `{}` + "\n", `null` + "\n",
	} {
		f, path := newGuard(t)
		put(t, path, text)
		write := func(context.Context) error { t.Errorf("%.40q: it wrote", text); return nil }
		if err := f.Do(t.Context(), 34, write); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
			t.Errorf("%.40q: %v", text, err)
		}
		if now, err := os.ReadFile(path); string(now) != text || err != nil {
			t.Errorf("%.40q became %.40q, %v", text, now, err)
		}
	}
}

func TestWhatIsNoRegularFileIsNotTouched(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", lockSuffix, newSuffix} {
		for name, make := range map[string]func(path string) error{
			"folder":           func(path string) error { return os.Mkdir(path, 0o700) },
			"pipe":             func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"link":             func(path string) error { put(t, path+".to", `{"token":1}`+"\n"); return os.Symlink(path+".to", path) },
			"link to nowhere":  func(path string) error { return os.Symlink(path+".to", path) },
			"link to a device": func(path string) error { return os.Symlink(os.DevNull, path) },
		} {
			if suffix == newSuffix && name != "folder" {
				continue // what stands there is removed, not followed
			}
			f, path := newGuard(t)
			if err := make(path + suffix); err != nil {
				t.Fatal(err)
			}
			if name == "folder" {
				put(t, filepath.Join(path+suffix, "inside"), "")
			}
			write := func(context.Context) error { t.Errorf("%s at token%s: it wrote", name, suffix); return nil }
			if err := f.Do(t.Context(), 34, write); err == nil || suffix != newSuffix && !errors.Is(err, ErrIrregular) {
				t.Errorf("%s at token%s: %v", name, suffix, err)
			}
			if _, err := os.Lstat(path + suffix); err != nil {
				t.Errorf("%s at token%s: %v", name, suffix, err)
			}
		}
	}
	// A link where the new file is made is removed, not followed.
	f, path := newGuard(t)
	put(t, path+".to", "mine")
	if err := os.Symlink(path+".to", path+newSuffix); err != nil {
		t.Fatal(err)
	}
	if err := f.Do(t.Context(), 34, nothing); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path + ".to"); string(text) != "mine" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

func TestAFolderThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	f, err := NewFile(filepath.Join(t.TempDir(), "no", "token"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Do(t.Context(), 34, nothing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := NewFile(""); !errors.Is(err, ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// A lock whose file was deleted excludes nobody who comes later: it is not taken for one.
func TestALockThatHasLostItsNameIsNone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := osDisk{}.tryLock(path)
	if err != nil || lock == nil {
		t.Fatal(lock, err)
	}
	defer lock.Close()
	if ok, err := named(lock, path); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if ok, err := named(lock, path); ok || err != nil {
		t.Errorf("%v, %v after it was deleted", ok, err)
	}
	put(t, path, "another one")
	if ok, err := named(lock, path); ok || err != nil {
		t.Errorf("%v, %v though another file has the name", ok, err)
	}
	if ok, err := named(lock, filepath.Join(path, "below")); ok || !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("%v, %v", ok, err)
	}
}

// What the system refuses is passed on, and nothing is taken for done.
func TestErrorsOfTheSystem(t *testing.T) {
	t.Parallel()
	closed, err := os.Create(filepath.Join(t.TempDir(), "closed"))
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	if ok, err := flock(closed); ok || err == nil {
		t.Errorf("lock of a closed file: %v, %v", ok, err)
	}
	if ok, err := named(closed, closed.Name()); ok || err == nil {
		t.Errorf("name of a closed file: %v, %v", ok, err)
	}
	if err := (osDisk{}).syncDir(filepath.Join(t.TempDir(), "no")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := (osDisk{}).create(filepath.Join(t.TempDir(), "no", "token")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A child that inherited the lock keeps it: the next one is let in when the last has closed it.
func TestWhoInheritedTheLockKeepsIt(t *testing.T) {
	t.Parallel()
	f, _ := newGuard(t)
	taken, err := f.Take(t.Context(), 33)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(taken.Lock().Fd())) // as a child has it
	if err != nil {
		t.Fatal(err)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Take(over, 34); !errors.Is(err, context.Canceled) {
		t.Errorf("%v: it was let in beside a child", err)
	}
	if err := syscall.Close(fd); err != nil {
		t.Fatal(err)
	}
	taken, err = f.Take(over, 34) // once it is tried, whatever has become of the context
	if err != nil {
		t.Fatal(err)
	}
	if err := taken.Close(); err != nil {
		t.Error(err)
	}
}
