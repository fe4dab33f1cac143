package guard

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// The test binary plays every part: the guard, the release program, a wrapper that a test drives by its
// standard input, and children. So whatever is killed here is a real process.
func TestMain(m *testing.M) {
	if IsRole(os.Args) {
		os.Exit(Main())
	}
	if ok, closing := IsRelease(os.Args); ok {
		os.Exit(playRelease(closing))
	}
	switch os.Getenv("GUARD_TEST_PART") {
	case "wrapper":
		os.Exit(playWrapper())
	case "hop":
		os.Exit(playHop())
	}
	flag.Parse()
	// Under nohup, or in a shell's background, this process ignores them, and so would whatever it starts.
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	goleak.VerifyTestMain(m)
}

// partEnv is the environment of a part: with it, the coverage of other processes counts too.
func partEnv(more ...string) []string {
	env := []string{"PATH=" + os.Getenv("PATH")}
	dir := os.Getenv("GOCOVERDIR")
	if f := flag.Lookup("test.gocoverdir"); f != nil && f.Value.String() != "" {
		dir = f.Value.String()
	}
	if dir != "" {
		env = append(env, "GOCOVERDIR="+dir)
	}
	return append(env, more...)
}

// testSettings is what tests put into the settings.
type testSettings struct {
	Secret  string `json:"secret"`
	Failing string `json:"failing"` // a file of one byte for each execution that is still to fail
}

// playRelease says on its standard error what it was given, in one line.
func playRelease(closing bool) int {
	settings := os.NewFile(SettingsFD, "settings")
	var s testSettings
	if err := json.NewDecoder(io.NewSectionReader(settings, 0, 1<<20)).Decode(&s); err != nil {
		fmt.Fprintln(os.Stderr, "release: bad settings:", err)
		return 1
	}
	if w, err := os.OpenFile("/proc/self/fd/3", os.O_WRONLY, 0); err != nil || must(w.Write([]byte("x"))) == nil {
		fmt.Fprintln(os.Stderr, "release: settings are not sealed")
		return 1
	}
	testament, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	if left, err := os.ReadFile(s.Failing); err == nil && len(left) > 0 {
		fmt.Fprintln(os.Stderr, "failing", string(testament))
		_ = os.WriteFile(s.Failing, left[1:], 0o600)
		return 1
	}
	word := "released"
	if closing {
		word = "closed"
	}
	fmt.Fprintln(os.Stderr, word, string(testament), s.Secret)
	return 0
}

// playHop starts its successor in a session of its own and ends, again and again: a chain that no process group holds. It
// never branches, so it is as long as it was told to be even where nobody stops it.
func playHop() int {
	left, _ := strconv.Atoi(os.Getenv("HOPS"))
	if left <= 0 {
		fmt.Fprintln(os.Stderr, "the chain reached its end")
		return 0
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"GUARD_TEST_PART=hop", "HOPS=" + strconv.Itoa(left-1)}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	_ = cmd.Start()
	return 0
}

func must(_ int, err error) error { return err }

// order is what a test tells the wrapper to do; answer is what the wrapper says.
type order struct {
	Do      string   `json:"do"` // send, kill, sweep, reap, stray, close
	Request *Request `json:"request,omitempty"`
}

type answer struct {
	Event *Event `json:"event,omitempty"`
	Did   string `json:"did,omitempty"`
	Err   string `json:"err,omitempty"`
}

// playWrapper is a wrapper that has no mind of its own.
func playWrapper() int {
	// A descriptor that its own starter forgot to mark: it must not come out at the child.
	if fd, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0); err != nil || fd < 3 {
		return 1
	}
	settings, _ := json.Marshal(testSettings{Secret: os.Getenv("SECRET"), Failing: os.Getenv("FAILING")})
	o := Options{Path: os.Getenv("GUARD_PATH"), Settings: settings, Env: partEnv(), Stdout: os.Stderr}
	var err error
	if path := os.Getenv("RELEASE"); path != "" {
		if o.Release, err = os.Open(path); err != nil {
			return 1
		}
	}
	if path := os.Getenv("KEPT"); path != "" {
		if o.Kept, err = os.OpenFile(path, os.O_RDWR, 0); err != nil || syscall.Flock(int(o.Kept.Fd()), syscall.LOCK_EX) != nil {
			return 1
		}
	}
	start := Start
	if os.Getenv("IN_PROCESS") != "" {
		start = InProcess
	}
	c, err := start(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return obey(c)
}

// obey passes events out and orders in.
func obey(c *Client) int {
	out, printed := make(chan answer), make(chan struct{})
	go func() {
		defer close(printed)
		for a := range out {
			line, _ := json.Marshal(a)
			fmt.Println(string(line))
		}
	}()
	events := make(chan struct{})
	go func() {
		defer close(events)
		for e := range c.Events() {
			out <- answer{Event: &e}
		}
	}()
	orders := json.NewDecoder(stdinOf())
	for {
		var o order
		if orders.Decode(&o) != nil {
			return 1
		}
		var err error
		switch o.Do {
		case "send":
			err = c.Send(*o.Request)
		case "kill":
			c.Kill()
		case "sweep":
			err = sweepSoon(c)
		case "reap":
			c.Reap()
		case "stray":
			cmd := exec.Command("/bin/sh", "-c", `sh -c 'read x; echo stray $$ >&2' <"$0" & exit 0`, "/dev/null")
			cmd.Stderr = os.Stderr
			err = cmd.Run()
		case "close":
			err = c.Close()
			<-events
		}
		a := answer{Did: o.Do}
		if err != nil {
			a.Err = err.Error()
		}
		out <- a
		if o.Do == "close" {
			close(out)
			<-printed
			return 0
		}
	}
}

// stdinOf gives the orders; on a terminal they come by descriptor 3 instead.
func stdinOf() *os.File {
	if fd := os.Getenv("ORDERS"); fd != "" {
		n, _ := strconv.Atoi(fd)
		syscall.CloseOnExec(n)
		return os.NewFile(uintptr(n), "orders")
	}
	return os.Stdin
}
