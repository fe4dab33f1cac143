package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == keepWord {
		os.Exit(keep(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	root               string
	run                *regexp.Regexp
	list, write, check bool
	alone              bool
	shard, of          int
}

// parseFlags reads the command line.
func parseFlags(args []string) (o options, err error) {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	run := flags.String("run", "", "only mutants whose names match this `regexp`")
	shard := flags.String("shard", "1/1", "only the part `i/n` of them")
	flags.BoolVar(&o.list, "list", false, "print them")
	flags.BoolVar(&o.write, "write", false, "write the table of "+tableFile)
	flags.BoolVar(&o.check, "check", false, "run nothing: whether texts match, tests and claims exist, the table is up to date")
	flags.BoolVar(&o.alone, "alone", false, "build each by itself")
	flags.StringVar(&o.root, "root", ".", "the `folder` of the checkout")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("argument %q: want flags only", flags.Arg(0))
	}
	if o.run, err = regexp.Compile(*run); err != nil {
		return o, fmt.Errorf("-run: %w", err)
	}
	if n, err := fmt.Sscanf(*shard, "%d/%d", &o.shard, &o.of); n != 2 || err != nil || o.shard < 1 || o.shard > o.of {
		return o, fmt.Errorf("-shard %q: want i/n, with i from 1 to n", *shard)
	}
	o.root, err = filepath.Abs(o.root)
	return o, err
}

// command does what the flags say.
func command(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseFlags(args)
	if err != nil {
		return err
	}
	all, err := read(filepath.Join(o.root, "test", "mutants"))
	if err != nil {
		return err
	}
	switch {
	case o.list:
		for _, m := range o.pick(all) {
			fmt.Fprintf(out, "%-44s %s: %s\n", m.name, m.file, m.breaks)
		}
		return nil
	case o.check || o.write:
		return inspect(o, all)
	}
	mutants := o.pick(all)
	if len(mutants) == 0 {
		return fmt.Errorf("-run %s: no mutant of that name", o.run)
	}
	began := time.Now()
	b := breaker{builder: builder{root: o.root}, out: out, alone: o.alone, within: testWithin}
	bad, err := b.run(ctx, mutants)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d mutants, %d killed, in %.0f s\n", len(mutants), len(mutants)-bad, time.Since(began).Seconds())
	if bad > 0 {
		return fmt.Errorf("%d mutants were not killed", bad)
	}
	return nil
}

// pick are the mutants that the flags choose.
func (o options) pick(all []*mutant) []*mutant {
	var some []*mutant
	for _, m := range all {
		if o.run.MatchString(m.name) {
			some = append(some, m)
		}
	}
	var mine []*mutant
	for i, m := range some {
		if i%o.of == o.shard-1 {
			mine = append(mine, m)
		}
	}
	return mine
}

// inspect checks the mutants and the table, or writes it.
func inspect(o options, all []*mutant) error {
	data, err := os.ReadFile(filepath.Join(o.root, filepath.FromSlash(claimsFile)))
	if err != nil {
		return fmt.Errorf("read claims: %w", err)
	}
	claims := readClaims(string(data))
	if wrong := check(o.root, claims, all); len(wrong) > 0 {
		var lines []string
		for _, err := range wrong {
			lines = append(lines, err.Error())
		}
		return fmt.Errorf("%d mistakes:\n%s", len(wrong), strings.Join(lines, "\n"))
	}
	is, want, err := document(o.root, claims, all)
	switch {
	case err != nil:
		return err
	case is == want:
		return nil
	case o.check:
		return fmt.Errorf("%s is out of date: run go run ./test/mutants -write", tableFile)
	}
	if err := os.WriteFile(filepath.Join(o.root, filepath.FromSlash(tableFile)), []byte(want), 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
