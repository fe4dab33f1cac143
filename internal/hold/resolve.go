package hold

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// headSize is how much of a file the kernel looks at to tell what it is.
const headSize = 256

// Resolve finds the file that argv0 names, as an exec in folder dir would ("" is the current folder), so
// that a typo is known before a hold is taken. path is the value of PATH.
//
// A name with a slash is taken as it is, relative to dir; any other name is looked for in path. A match in
// a relative or empty element of path is refused: whoever wants the current folder writes ./name. The
// result is absolute, or relative to dir where argv0 was.
//
// The error wraps ErrNotFound (127) or ErrNotExecutable (126). What Resolve accepts can still fail at
// exec: the file may change, and only the kernel knows which binaries it can run.
func Resolve(argv0, path, dir string) (string, error) {
	if argv0 == "" {
		return "", fmt.Errorf("%w: the name is empty", ErrNotFound)
	}
	if strings.Contains(argv0, "/") {
		file := under(dir, argv0)
		if err := executable(file); err != nil {
			return "", err
		}
		return argv0, format(file, dir)
	}

	// Remember what stood in the way: a file that cannot be run says more than "not found".
	var blocked error
	for _, element := range filepath.SplitList(path) {
		file := filepath.Join(element, argv0)
		err := executable(under(dir, file))
		switch {
		case err == nil && !filepath.IsAbs(element):
			return "", fmt.Errorf("%w: %s is in PATH only through the current folder; write ./%s",
				ErrNotExecutable, Escape(argv0), Escape(argv0))
		case err == nil:
			return file, format(file, dir)
		case blocked == nil && errors.Is(err, ErrNotExecutable):
			blocked = err
		}
	}
	if blocked != nil {
		return "", blocked
	}
	return "", fmt.Errorf("%w: %s", ErrNotFound, Escape(argv0))
}

func under(dir, file string) string {
	if dir == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// executable checks that file is a regular file which this process may execute.
func executable(file string) error {
	fi, err := os.Stat(file)
	switch {
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w: %s: %w", ErrNotExecutable, Escape(file), syscall.EACCES)
	case err != nil:
		return fmt.Errorf("%w: %s", ErrNotFound, Escape(file))
	case fi.IsDir():
		return fmt.Errorf("%w: %s is a folder", ErrNotExecutable, Escape(file))
	case !fi.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file", ErrNotExecutable, Escape(file))
	}
	const mayExecute = 1
	if err := syscall.Access(file, mayExecute); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotExecutable, Escape(file), err)
	}
	return nil
}

// format looks at the first bytes of file: a script has to name an interpreter that is there. A file that
// may be executed and not read, and any binary, is left for the kernel to judge.
func format(file, dir string) error {
	head, err := readHead(file)
	if err != nil {
		return nil
	}
	line, script := bytes.CutPrefix(head, []byte("#!"))
	if !script {
		if bytes.HasPrefix(head, []byte("\x7fELF")) || bytes.IndexByte(head, 0) >= 0 {
			return nil
		}
		return fmt.Errorf("%w: %s is no binary, and as a script it lacks the #! line", ErrNotExecutable, Escape(file))
	}

	// The interpreter ends at the first blank; what follows is its argument.
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == 0 })
	if len(words) == 0 {
		return fmt.Errorf("%w: the #! line of %s names no interpreter", ErrNotExecutable, Escape(file))
	}
	if err := executable(under(dir, string(words[0]))); err != nil {
		return fmt.Errorf("%w (the interpreter of %s)", err, Escape(file))
	}
	return nil
}

func readHead(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, headSize))
}
