package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-coord/coord/test/postgres"
	"github.com/go-coord/coord/test/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(closing{m}) }

type closing struct{ m *testing.M }

func (c closing) Run() int {
	defer postgres.Close()
	return c.m.Run()
}

// play builds an example and runs it to its end, which has to be 0.
func play(t *testing.T, name string, env ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./examples/"+name)
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	p := run.StartWith(t, run.Options{Path: path, Env: env})
	if code := p.Wait(); code != 0 || p.Stderr() != "" {
		t.Fatalf("%s: code %d; stderr: %s\nstdout: %s", name, code, p.Stderr(), p.Stdout())
	}
	return p.Stdout()
}

// inOrder looks for lines, each below the one before.
func inOrder(t *testing.T, text string, lines ...string) {
	t.Helper()
	rest := text
	for _, want := range lines {
		at := regexp.MustCompile("(?m)^" + want + "$").FindStringIndex(rest)
		if at == nil {
			t.Fatalf("no line %q in\n%s", want, text)
		}
		rest = rest[at[1]:]
	}
}

// told is what has to come of the story, without a guard and with one.
func told(database string) []string {
	var all []string
	for _, row := range [][3]string{
		{"without a guard", "done", "by A, late"},
		{"guarded by fence.SQL", `refused: fence: "report": token [0-9]+ is below [0-9]+, the highest seen`, "by B"},
	} {
		all = append(all, "--- "+database+", "+row[0],
			`A  writes "by A": done`, `A  looks whether it holds: true\. .*`, `A  is stopped \(SIGSTOP\) .*`,
			`B  holds the office, with token [0-9]+`, `B  writes "by B": done`, `A  wakes up \(SIGCONT\), .*`,
			`A  writes "by A, late": `+row[1], `   the report says: "`+row[2]+`"`)
	}
	return all
}

func TestAPausedHolderIsRefused(t *testing.T) {
	t.Parallel()
	inOrder(t, play(t, "fencing"), append([]string{"PostgreSQL: none, .*"}, told("SQLite")...)...)
}

func TestAPausedHolderIsRefusedByPostgreSQLToo(t *testing.T) {
	t.Parallel()
	dsn := postgres.DSN(t)
	inOrder(t, play(t, "fencing", "FENCING_POSTGRES="+dsn), append(told("SQLite"), told("PostgreSQL")...)...)
}

func TestOneHostTakesOverFromADeadOne(t *testing.T) {
	t.Parallel()
	out := play(t, "failover")
	inOrder(t, out, `host-1  is killed \(SIGKILL\)\. It ran vm-1`, `host-[23]  takes vm-1`, `host-2  is killed \(SIGKILL\)\. .*`,
		`   now: map\[vm-1:host-3 vm-2:host-3 vm-3:host-3\]`)
	first, _, _ := strings.Cut(out, "host-2  is killed")
	if n := strings.Count(first, "takes vm-1"); n != 1 {
		t.Errorf("%d hosts took over from the first that died:\n%s", n, out)
	}
}
