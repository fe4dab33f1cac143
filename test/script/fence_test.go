package script

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-coord/coord/test/run"
)

// fenced runs conch fence in a folder and gives its code.
func fenced(t *testing.T, dir, token string, argv ...string) (int, string) {
	t.Helper()
	p := run.StartWith(t, run.Options{Args: append([]string{"fence", "--file", "token", "--token", token, "--"}, argv...), Dir: dir})
	return p.Wait(), p.Stderr()
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The wrapper is killed after the check and before the command: its guard takes its time here, and never starts one.
// Red when the token is stored later than that, or the guard keeps the lock for ever.
func TestAFenceThatIsKilledBeforeItsCommandHasStoredItsToken(t *testing.T) {
	t.Parallel()
	dir, bin := t.TempDir(), t.TempDir()
	conch := filepath.Join(bin, "conch")
	if err := os.Link(run.Build(t).Conch, conch); err != nil {
		t.Fatal(err)
	}
	// A guard that says nothing, and ends with its wrapper.
	asked := filepath.Join(dir, "asked")
	script := fmt.Sprintf("#!/bin/sh\n: >%s\nwhile read -r _; do :; done <&3\n", asked)
	if err := os.WriteFile(filepath.Join(bin, "holdguard"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	p := run.StartWith(t, run.Options{Path: conch, Args: []string{"fence", "--file", "token", "--token", "34", "--", "touch", "ran"}, Dir: dir})
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) { // a file that appears is no event that every system tells of
		if _, err := os.Stat(asked); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the guard was not started; %s", p.Stderr())
		}
	}
	if got := read(t, filepath.Join(dir, "token")); got != `{"token":34}`+"\n" {
		t.Errorf("the guard is asked to start the command, and the file holds %q", got)
	}
	p.Kill()
	if code := p.Wait(); code != 137 {
		t.Errorf("code %d", code)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("the command ran")
	}
	if code, stderr := fenced(t, dir, "33", "true"); code != 76 {
		t.Errorf("a lower token: code %d; %s", code, stderr)
	}
	if code, stderr := fenced(t, dir, "34", "true"); code != 0 {
		t.Errorf("the same token: code %d; %s", code, stderr)
	}
}

// Many at once, under lower, equal and higher tokens: one at a time, and none after a higher one. The witness is a folder,
// which the kernel makes for one of two only.
func TestFencesAtTheSameTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run.Build(t)
	// Twelve of each, which let each other in, and between them some that may come too late.
	const most = 5
	var tokens []int
	for token := 1; token <= most; token++ {
		for range 12 {
			tokens = append(tokens, token)
		}
		tokens = append(tokens, 1+rand.IntN(token), 1+rand.IntN(token))
	}
	var mu sync.Mutex
	ran := map[string]int{}
	each(tokens, func(n int) {
		token := strconv.Itoa(n)
		code, stderr := fenced(t, dir, token, "sh", "-c", `mkdir alone || exit 9; echo "$CONCH_REV" >>log; sleep 0.01; rmdir alone`)
		switch {
		case code == 0 && stderr == "":
			mu.Lock()
			ran[token]++
			mu.Unlock()
		case code != 76 || !strings.Contains(stderr, "token "+token+" is below "):
			t.Errorf("token %s: code %d; %s", token, code, stderr)
		}
	})

	var log []int
	for word := range strings.FieldsSeq(read(t, filepath.Join(dir, "log"))) {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, n)
		ran[word]--
	}
	if !slices.IsSorted(log) || log[len(log)-1] != most {
		t.Errorf("they ran in the order %d", log)
	}
	for token, n := range ran {
		if n != 0 {
			t.Errorf("token %s: %d more ended with 0 than ran", token, n)
		}
	}
}

// Wrapper and guard are killed together: what is left of the command has the lock, and keeps the next one out.
func TestWhatOutlivesAFenceKeepsTheNextOneOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := run.StartWith(t, run.Options{
		Args: []string{"fence", "--file", "token", "--token", "34", "--", "sh", "-c", `setsid sh -c 'echo left $$; exec sleep 600' & wait`}, Dir: dir,
	})
	left, err := strconv.Atoi(strings.Fields(p.WaitOut("left"))[1])
	if err != nil {
		t.Fatal(err)
	}
	// The wrapper is stopped first, so that it does not see the guard's end and takes over.
	guard := p.Guard()
	p.Stop()
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if code := p.Wait(); code != 137 {
		t.Errorf("code %d", code)
	}
	if !run.Alive(left) {
		t.Fatal("nothing is left: the test shows nothing")
	}
	waiter := run.StartWith(t, run.Options{Args: []string{"fence", "--file", "token", "--token", "35", "--wait", "0", "--", "touch", "ran"}, Dir: dir})
	if code := waiter.Wait(); code != 75 {
		t.Errorf("beside what is left: code %d; %s", code, waiter.Stderr())
	}
	if err := syscall.Kill(left, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code, stderr := fenced(t, dir, "35", "true"); code != 0 {
		t.Errorf("when nothing is left: code %d; %s", code, stderr)
	}
}

// The guard is killed: what it leaves is ended by the wrapper, and only then is the next one let in.
func TestAFenceWhoseGuardIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := run.StartWith(t, run.Options{
		Args: []string{"fence", "--file", "token", "--token", "34", "--", "sh", "-c", `setsid sh -c 'trap "" TERM; echo left $$; exec sleep 600' & wait`}, Dir: dir,
	})
	left, err := strconv.Atoi(strings.Fields(p.WaitOut("left"))[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(p.Guard(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code, stderr := fenced(t, dir, "34", "sh", "-c", `! kill -0 "$1" 2>/dev/null`, "sh", strconv.Itoa(left)); code != 0 {
		t.Errorf("code %d: it is let in beside what is left; %s", code, stderr)
	}
	if code := p.Wait(); code != 70 || !strings.Contains(p.Stderr(), "the guard is gone") {
		t.Errorf("code %d; %s", code, p.Stderr())
	}
}
