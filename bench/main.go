//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	if code, played := playRole(os.Args); played {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
	}
	os.Exit(code)
}

// settings are what the command line says.
type settings struct {
	bin, only, from, docs string
	rounds                int
	json, check, write    bool
}

func parse(args []string) (s settings, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&s.bin, "bin", "bin", "directory of conch, conchd, holdguard, etcdctl and etcd")
	flags.IntVar(&s.rounds, "rounds", 10, "rounds, in each of which every contestant has a turn; what takes long has a third of them")
	flags.BoolVar(&s.json, "json", false, "print one JSON object a line")
	flags.StringVar(&s.only, "only", "", "cases to measure, joined by commas, of "+strings.Join(caseNames(), ", ")+"; default all")
	flags.BoolVar(&s.check, "check", false, "exit 1 when a target is missed")
	flags.BoolVar(&s.write, "write", false, "keep the run, and make the charts and documents from it; it takes all cases")
	flags.StringVar(&s.from, "from", "", "a kept run, to be used instead of measuring")
	flags.StringVar(&s.docs, "docs", "docs", "directory of the documents")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("argument %q: want flags only", flags.Arg(0))
	}
	if s.rounds < 1 {
		return s, fmt.Errorf("-rounds %d: want 1 or more", s.rounds)
	}
	if s.write && s.only != "" {
		return s, fmt.Errorf("-write with -only %s: the documents show one run of all cases", s.only)
	}
	return s, nil
}

// run measures, or reads what was measured, and tells it. The code is 1 where a target was missed and that is asked.
func run(ctx context.Context, args []string, out io.Writer) (code int, err error) {
	s, err := parse(args)
	if err != nil {
		return 64, err
	}
	var taken record
	var failed error // of some cases: the others are shown, but no document is made of a part
	if s.from != "" {
		taken, err = readRecord(s.from)
	} else {
		taken, failed, err = measure(ctx, s)
	}
	if err != nil {
		return 1, err
	}
	if s.json {
		err = printJSON(out, taken.Results)
	} else {
		err = printTable(out, taken)
	}
	if err = errors.Join(err, failed); err == nil && s.write {
		err = writeDocuments(s.docs, taken)
	}
	if err != nil || s.check && missed(taken.Results) {
		return 1, err
	}
	return 0, nil
}

// measure takes the cases that are asked for. One that fails, as where a busy machine made it lose what it held, keeps no other from being
// taken.
func measure(ctx context.Context, s settings) (taken record, failed, err error) {
	chosen, err := choose(s.only)
	if err != nil {
		return taken, nil, err
	}
	b, err := newBench(ctx, s.bin, full(s.rounds))
	if err != nil {
		return taken, nil, err
	}
	defer b.close()
	taken = record{Machine: machine(), Date: time.Now().UTC().Format(time.DateOnly), Rounds: s.rounds}
	taken.Load[0] = load()
	for _, c := range chosen {
		began := time.Now()
		fmt.Fprintf(os.Stderr, "%s: ", c.name)
		o, err := b.take(ctx, c)
		if ctx.Err() != nil {
			return taken, nil, context.Cause(ctx)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "failed")
			failed = errors.Join(failed, fmt.Errorf("%s: %w", c.name, err))
			continue
		}
		fmt.Fprintf(os.Stderr, "%.0f s\n", time.Since(began).Seconds())
		taken.Results = append(taken.Results, o.results...)
		taken.Charts = append(taken.Charts, o.charts...)
	}
	taken.Load[1] = load()
	return taken, failed, nil
}

func readRecord(path string) (r record, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("read a run: %w", err)
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("read the run %s: %w", path, err)
	}
	return r, nil
}
