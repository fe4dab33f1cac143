package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/cron/manifest"
)

// jobFiles is the flag that says where jobs are read from.
type jobFiles struct{ paths []string }

func (f *jobFiles) declare(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.paths, "file", "f", nil, "a file of jobs, a folder of such files, or - for stdin; several times for several")
}

// read reads them all, and reports what is no job. An error is about the files themselves.
func (f *jobFiles) read(env cli.Env) ([]manifest.Entry, []error, error) {
	if len(f.paths) == 0 {
		return nil, nil, cli.Usagef("-f is missing: want a file, a folder, or - for stdin")
	}
	r, err := manifest.NewReader()
	if err != nil {
		return nil, nil, err
	}
	for _, path := range f.paths {
		if err := readJobs(r, path, env.Stdin); err != nil {
			return nil, nil, cli.Usagef("-f %s: %w", cli.Quote(path), cli.WithoutPath(err))
		}
	}
	return r.Entries, r.Faults, nil
}

var errNoFiles = errors.New("want a folder that holds files named *.yaml, *.yml or *.json")

func readJobs(r *manifest.Reader, path string, stdin io.Reader) error {
	if path == "-" {
		data, err := readBounded(stdin)
		r.Read("stdin", data)
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = jobFilesIn(path); err != nil {
			return err
		}
	}
	for _, name := range files {
		if err := readFile(r, name); err != nil {
			return err
		}
	}
	return nil
}

func readFile(r *manifest.Reader, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := readBounded(file)
	if err != nil {
		return fmt.Errorf("read %s: %w", cli.Quote(name), cli.WithoutPath(err))
	}
	r.Read(name, data)
	return nil
}

// readBounded reads one byte more than a file may have, so that this shows.
func readBounded(from io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(from, manifest.MaxSize+1))
}

// jobFilesIn are the files of a folder, in order. What begins with a dot is none.
func jobFilesIn(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") && slices.Contains([]string{".yaml", ".yml", ".json"}, ext) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, errNoFiles
	}
	return files, nil
}
