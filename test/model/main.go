// Command model searches the models of the protocol in docs/model with spin.
//
//	model [-all] [-run REGEXP] [-timeout D] [-memory MB]
//
// Which searches there are, and what each has to find, says docs/model/searches.txt. Without -all it does those that every
// change has to pass.
//
// # What is not promised
//
// That the code is right: a model is what somebody understood of it. What each of them leaves out stands in its head. A clean
// search says that no state within its bounds breaks a property; those that were not exhausted say less, and are listed so.
//
// # What is checked
//
// A search that is to be clean fails if anything is found, and also if it did not see all there is: too deep, out of memory,
// out of time. One that is to give a counterexample, a rule broken on purpose, fails if it finds none, or does not
// get to the end of compiling: else a model in which nothing ever happens would pass.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	all     bool
	names   *regexp.Regexp
	timeout time.Duration
	memory  int
	folder  string
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(64)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := searchAll(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	o := options{folder: filepath.FromSlash("docs/model")}
	flags := flag.NewFlagSet("model", flag.ContinueOnError)
	flags.BoolVar(&o.all, "all", false, "do all searches, also those that take minutes")
	flags.DurationVar(&o.timeout, "timeout", 20*time.Minute, "the longest that one search may take")
	flags.IntVar(&o.memory, "memory", 2000, "the most memory that one search may take, in MB")
	names := flags.String("run", "", "do the searches whose name `REGEXP` matches, whatever -all says")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("argument %q: want flags only", flags.Arg(0))
	}
	if *names != "" {
		re, err := regexp.Compile(*names)
		if err != nil {
			return o, fmt.Errorf("-run %q: want a regular expression: %w", *names, err)
		}
		o.names = re
	}
	if o.timeout <= 0 || o.memory < 64 {
		return o, fmt.Errorf("-timeout %v, -memory %d: want a positive time, and 64 MB or more", o.timeout, o.memory)
	}
	return o, nil
}

// searchAll does the chosen searches, as many at a time as there are processors, and prints a line for each as it ends.
func searchAll(ctx context.Context, o options) error {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("find %s: %w (on Debian: apt-get install spin gcc libc6-dev)", tool, err)
		}
	}
	searches, err := readSearches(filepath.Join(o.folder, "searches.txt"))
	if err != nil {
		return err
	}
	var chosen []search
	for _, s := range searches {
		if o.names != nil && o.names.MatchString(s.name) || o.names == nil && (o.all || s.ci) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return errors.New("-run: no search has such a name")
	}

	began, wrong := time.Now(), 0
	for v := range verdicts(ctx, o, chosen) {
		fmt.Println(v.line())
		if v.err != nil {
			wrong++
			fmt.Print(v.details)
		}
	}
	fmt.Printf("%d searches in %.0f s, %d of them wrong\n", len(chosen), time.Since(began).Seconds(), wrong)
	if wrong > 0 {
		return fmt.Errorf("%d of %d searches did not end as %s says", wrong, len(chosen), filepath.Join(o.folder, "searches.txt"))
	}
	return nil
}

// verdicts does searches side by side.
func verdicts(ctx context.Context, o options, searches []search) <-chan verdict {
	todo, out := make(chan search), make(chan verdict)
	workers := min(runtime.NumCPU(), len(searches))
	left := make(chan struct{}, workers)
	for range workers {
		go func() {
			for s := range todo {
				out <- o.do(ctx, s)
			}
			left <- struct{}{}
		}()
	}
	go func() {
		for _, s := range searches {
			todo <- s
		}
		close(todo)
		for range workers {
			<-left
		}
		close(out)
	}()
	return out
}
