//go:build linux

package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// config is what a run was asked for. The outer process hands it to the inner one.
type config struct {
	Span      time.Duration
	Seed      uint64
	Faults    []string // kinds
	Workloads []string
	Dir       string // of this run: what is kept of it, and its scratch
	Keep      bool   // the folder stays also where nothing is wrong
	Bin       string
	Self      string // this program
	Netns     bool
	Verbose   bool
	JSON      bool
	Outer     int // process that began it
}

// options are the flags as they were typed.
type options struct {
	config
	faultList, workloadList string
	noNetns                 bool
}

// parse reads the command line.
func parse(args []string, stderr io.Writer) (config, error) {
	o := options{}
	set := flag.NewFlagSet("chaos", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.DurationVar(&o.Span, "for", time.Minute, "how long faults happen, 10s to 2h")
	set.Uint64Var(&o.Seed, "seed", rand.Uint64(), "makes the same faults happen again; drawn at random unless given")
	set.StringVar(&o.faultList, "faults", "", "kinds of faults, joined by commas; all unless given: "+strings.Join(kindNames(), " "))
	set.StringVar(&o.workloadList, "workloads", "", "workloads, joined by commas; all unless given: "+strings.Join(workloadNames(), " "))
	set.StringVar(&o.Dir, "dir", "", "folder, new or empty, for history, picture and logs; unless given, a temporary one that is removed when nothing is wrong")
	set.StringVar(&o.Bin, "bin", "bin", "folder of conch, holdguard, conchd and etcd: another one to see a broken build caught")
	set.BoolVar(&o.noNetns, "no-netns", false, "no network namespaces, and none of the faults that need them")
	set.BoolVar(&o.Verbose, "v", false, "print each fault as it happens")
	set.BoolVar(&o.JSON, "json", false, "print the summary as one line of JSON")
	if err := set.Parse(args); err != nil {
		return config{}, err
	}
	if set.NArg() > 0 {
		return config{}, fmt.Errorf("argument %q: want flags only", set.Arg(0))
	}
	return o.check()
}

// check refuses what cannot be meant.
func (o options) check() (c config, err error) {
	c = o.config
	c.Keep, c.Netns, c.Outer = c.Dir != "", !o.noNetns, os.Getpid()
	// Beyond two hours the history of a job that runs each second is cut, and the audit would miss what it tells.
	if c.Span < 10*time.Second || c.Span > 2*time.Hour {
		return c, fmt.Errorf("-for %v: want 10s to 2h", c.Span)
	}
	if c.Faults, err = chosen("-faults", o.faultList, kindNames()); err != nil {
		return c, err
	}
	if c.Workloads, err = chosen("-workloads", o.workloadList, workloadNames()); err != nil {
		return c, err
	}
	if c.Self, err = os.Executable(); err != nil {
		return c, err
	}
	if c.Bin, err = filepath.Abs(c.Bin); err != nil {
		return c, err
	}
	for _, name := range []string{"conch", "holdguard", "conchd", "etcd"} {
		if _, err := os.Stat(filepath.Join(c.Bin, name)); err != nil {
			return c, fmt.Errorf("-bin %s: %w: make build tools builds it", c.Bin, err)
		}
	}
	return c, c.folder()
}

// longestDir is what a path of a socket in the scratch leaves to the folder's own.
const longestDir = 80

// folder makes the folder of the run.
func (c *config) folder() (err error) {
	if !c.Keep {
		if len(os.TempDir()) > longestDir-32 {
			return fmt.Errorf("TMPDIR %s: a path of %d bytes: want %d at most, since sockets are made below it", os.TempDir(), len(os.TempDir()), longestDir-32)
		}
		c.Dir, err = os.MkdirTemp("", fmt.Sprintf("conch-chaos-%d-", c.Outer))
		return err
	}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	if len(c.Dir) > longestDir {
		return fmt.Errorf("-dir %s: a path of %d bytes: want %d at most, since sockets are made below it", c.Dir, len(c.Dir), longestDir)
	}
	there, err := os.ReadDir(c.Dir)
	if err == nil && len(there) > 0 {
		err = fmt.Errorf("-dir %s: it holds %s: want a new or an empty folder", c.Dir, there[0].Name())
	}
	return err
}

// chosen takes a list apart.
func chosen(name, list string, known []string) ([]string, error) {
	if list == "" {
		return known, nil
	}
	words := strings.Split(list, ",")
	for _, w := range words {
		if !slices.Contains(known, w) {
			return nil, fmt.Errorf("%s %q: want of %s", name, w, strings.Join(known, ", "))
		}
	}
	return words, nil
}

// path is a place in the folder that is kept, scratch one in the part of it that is not.
func (c config) path(elem ...string) string {
	return filepath.Join(append([]string{c.Dir}, elem...)...)
}

func (c config) scratch(elem ...string) string {
	return c.path(append([]string{"scratch"}, elem...)...)
}

func (c config) ledgerPath() string { return c.path("ledger.jsonl") }

// mark is in the environment of all that the run starts.
func (c config) mark() string { return markOf(c.Outer) }

// markOf is the mark of the run that a process began.
func markOf(outer int) string { return fmt.Sprint(outer) }

// replay is the command that lets the same faults happen again.
func (c config) replay() string {
	words := []string{"go run ./test/chaos", "-for", c.Span.String(), "-seed", fmt.Sprint(c.Seed)}
	if len(c.Faults) < len(kindNames()) {
		words = append(words, "-faults", strings.Join(c.Faults, ","))
	}
	if len(c.Workloads) < len(workloadNames()) {
		words = append(words, "-workloads", strings.Join(c.Workloads, ","))
	}
	if built, err := filepath.Abs("bin"); err != nil || c.Bin != built {
		words = append(words, "-bin", c.Bin)
	}
	if !c.Netns {
		words = append(words, "-no-netns")
	}
	return strings.Join(words, " ")
}
