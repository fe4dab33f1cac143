package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// breaker breaks mutants and prints what becomes of them.
type breaker struct {
	builder
	out    io.Writer
	alone  bool
	within time.Duration // for the test of a mutant

	// quiet is held where nothing else may run beside: what passes without a mutant must not fail for want of time.
	quiet sync.RWMutex

	mu  sync.Mutex
	bad int
}

// work is one mutant that can be tested.
type work struct {
	mutant *mutant
	binary string
	number int // to be put in force; 0: it is
}

// run builds and judges all, and returns how many were not killed.
func (b *breaker) run(ctx context.Context, mutants []*mutant) (bad int, err error) {
	if b.scratch, err = os.MkdirTemp("", "mutants"); err != nil {
		return 0, fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(b.scratch)
	queue := make(chan work)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for w := range queue {
				b.judge(ctx, w)
			}
		})
	}
	for _, g := range groups(mutants) {
		if err = b.group(ctx, g, queue); err != nil {
			break
		}
	}
	close(queue)
	workers.Wait()
	if err == nil {
		err = context.Cause(ctx)
	}
	return b.bad, err
}

// group builds a package's mutants, and queues them once its tests have passed without.
func (b *breaker) group(ctx context.Context, g *group, queue chan<- work) error {
	g.mutants = b.matching(g.mutants)
	binary, apart, wrong, err := b.joint(ctx, g)
	if err != nil {
		return err
	}
	if err := b.baseline(ctx, g, binary); err != nil {
		return err
	}
	skip := map[*mutant]bool{}
	for _, m := range apart {
		skip[m] = true
	}
	for i, m := range g.mutants {
		if !skip[m] && !wrong[m] {
			queue <- work{m, binary, i + 1}
		}
	}
	for _, m := range apart {
		files, err := b.builder.alone(m)
		if err != nil {
			return err
		}
		binary, err := b.build(ctx, g.pkg, files)
		if err != nil {
			b.say(judgement{mutant: m, verdict: broken, detail: err.Error()})
			continue
		}
		queue <- work{m, binary, 0}
	}
	return nil
}

// matching are the mutants whose texts are there.
func (b *breaker) matching(mutants []*mutant) []*mutant {
	var some []*mutant
	for _, m := range mutants {
		if _, _, err := b.texts(m); err != nil {
			b.say(judgement{mutant: m, verdict: broken, detail: err.Error()})
			continue
		}
		some = append(some, m)
	}
	return some
}

var inCopy = regexp.MustCompile(`mutant-(\d{4}):\d.*`)

// joint builds the mutants of a group together, without those that the compiler finds wrong. The rest is apart.
func (b *breaker) joint(ctx context.Context, g *group) (binary string, apart []*mutant, wrong map[*mutant]bool, err error) {
	if b.alone {
		binary, err = b.build(ctx, g.pkg, nil)
		return binary, g.mutants, nil, err
	}
	wrong = map[*mutant]bool{}
	for {
		files, apart, err := b.together(g, wrong)
		if err != nil {
			return "", nil, nil, err
		}
		binary, err := b.build(ctx, g.pkg, files)
		if err == nil {
			return binary, apart, wrong, nil
		}
		found := inCopy.FindAllStringSubmatch(err.Error(), -1)
		if len(found) == 0 {
			return "", nil, nil, err
		}
		for _, f := range found {
			n, _ := strconv.Atoi(f[1]) // it is digits
			if m := g.mutants[n-1]; !wrong[m] {
				wrong[m] = true
				b.say(judgement{mutant: m, verdict: broken, detail: f[0]})
			}
		}
	}
}

// baseline runs the tests of a group without a mutant: they have to pass.
func (b *breaker) baseline(ctx context.Context, g *group, binary string) error {
	seen := map[string]bool{}
	var names []string
	for _, m := range g.mutants {
		name, _, _ := strings.Cut(m.test, "/")
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	b.quiet.Lock()
	defer b.quiet.Unlock()
	r, err := runTests(ctx, b.root, g.pkg, binary, "^("+strings.Join(names, "|")+")$", 2*b.within)
	if err != nil {
		return err
	}
	if !r.passed {
		return fmt.Errorf("the tests of ./%s do not pass without a mutant\n%s", g.pkg, tail(r.out))
	}
	fmt.Fprintf(b.out, "./%s: %d tests of %d mutants pass without one, in %.1f s\n", g.pkg, len(names), len(g.mutants), r.took.Seconds())
	return nil
}

// judge puts a mutant in force, has it judged, and removes what was built for it.
func (b *breaker) judge(ctx context.Context, w work) {
	if ctx.Err() != nil {
		return
	}
	binary := w.binary
	if w.number > 0 {
		var err error
		if binary, err = b.force(w.binary, w.number); err != nil {
			b.say(judgement{mutant: w.mutant, verdict: broken, detail: err.Error()})
			return
		}
	}
	b.quiet.RLock()
	j := judge(ctx, b.root, binary, w.mutant, b.within)
	b.quiet.RUnlock()
	_ = os.Remove(binary) // at the latest it goes with the folder
	if ctx.Err() == nil {
		b.say(j)
	}
}

// say prints a judgement, and counts what is not as it should be.
func (b *breaker) say(j judgement) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !j.ok() {
		b.bad++
	}
	fmt.Fprintln(b.out, j)
}
