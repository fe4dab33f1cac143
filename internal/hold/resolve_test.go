package hold_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-coord/coord/internal/hold"
)

// commands lays out files of all sorts and gives their folder.
func commands(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/ok", "#!/bin/sh\n", 0o755)
	write("bin/args", "#! /bin/sh -e \n", 0o755)
	write("bin/near", "#!./ok\n", 0o755)
	write("bin/plain", "#!/bin/sh\n", 0o644)
	write("bin/noshebang", "echo hi\n", 0o755)
	write("bin/empty", "", 0o755)
	write("bin/elf", "\x7fELF\x02", 0o755)
	write("bin/binary", "\xcf\xfa\xed\xfe\x00", 0o755)
	write("bin/badbang", "#!/nowhere/interpreter\n", 0o755)
	write("bin/crlf", "#!/bin/sh\r\n", 0o755)
	write("bin/nobang", "#! \t\n", 0o755)
	write("bin/dirbang", "#!/bin\n", 0o755)
	write("bin/folder/x", "", 0o644)
	write("second/plain", "#!/bin/sh\n", 0o755)
	write("second/folder", "#!/bin/sh\n", 0o755)
	if err := syscall.Mkfifo(filepath.Join(dir, "bin/fifo"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(dir, "bin/loop")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir := commands(t)
	bin, second := dir+"/bin", dir+"/second"
	for _, tt := range []struct {
		name, argv0, path, in string
		want                  string // "" for an error
		code                  int
		says                  string
	}{
		{"in PATH", "ok", bin, "", bin + "/ok", 0, ""},
		{"an interpreter with arguments", "args", bin, "", bin + "/args", 0, ""},
		{"the second folder of PATH", "ok", second + ":" + bin, "", bin + "/ok", 0, ""},
		{"what cannot be run does not hide what can", "plain", bin + ":" + second, "", second + "/plain", 0, ""},
		{"nor does a folder", "folder", bin + ":" + second, "", second + "/folder", 0, ""},
		{"with a slash, as it is", bin + "/ok", "", "", bin + "/ok", 0, ""},
		{"with a slash, relative to the folder of the child", "./bin/ok", "", dir, "./bin/ok", 0, ""},
		{"an interpreter relative to it", "./near", "", bin, "./near", 0, ""},
		{"a binary of this system", "elf", bin, "", bin + "/elf", 0, ""},
		{"a binary that only the kernel can judge", "binary", bin, "", bin + "/binary", 0, ""},

		{"nothing", "", bin, "", "", 127, "the name is empty"},
		{"not in PATH", "absent", bin, "", "", 127, "absent"},
		{"no PATH at all", "ok", "", "", "", 127, "ok"},
		{"not at the given place", "./absent", bin, dir, "", 127, "/absent"},
		{"below a file", bin + "/ok/x", "", "", "", 127, "/ok/x"},
		{"NUL in the name", "a\x00b", bin, "", "", 127, `a\x00b`},
		{"a name longer than any file's", strings.Repeat("a", 5000), bin, "", "", 127, "aaa"},
		{"a link to itself", "loop", bin, "", "", 127, "loop"},
		{"hostile text in the name", "\x1b[2J", bin, "", "", 127, `\x1b[2J`},
		{"found, and not executable", "plain", bin, "", "", 126, "permission denied"},
		{"a folder", bin, "", "", "", 126, "is a folder"},
		{"a pipe, which is not opened", bin + "/fifo", "", "", "", 126, "not a regular file"},
		{"a script without #!", "noshebang", bin, "", "", 126, "#!"},
		{"an empty file", "empty", bin, "", "", 126, "#!"},
		{"no interpreter named", "nobang", bin, "", "", 126, "no interpreter"},
		{"an interpreter that is a folder", "dirbang", bin, "", "", 126, "is a folder"},
		{"an interpreter that is not there", "badbang", bin, "", "", 127, "/nowhere/interpreter"},
		{"line ends of another system", "crlf", bin, "", "", 127, `/bin/sh\r`},
		{"in the current folder by an empty element", "ok", ":", bin, "", 126, "write ./ok"},
		{"in the current folder by a dot", "ok", ".", bin, "", 126, "write ./ok"},
		{"by another relative element", "ok", "bin", dir, "", 126, "write ./ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := hold.Resolve(tt.argv0, tt.path, tt.in)
			if code := hold.ExitCode(err); code != tt.code {
				t.Fatalf("err = %v: code %d, want %d", err, code, tt.code)
			}
			if err == nil && got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("err = %q, want it to say %q", err, tt.says)
			}
			if err != nil && errors.Is(err, hold.ErrUnreachable) {
				t.Errorf("err = %v wraps two sentinels", err)
			}
		})
	}
}
