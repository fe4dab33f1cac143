package run

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Programs are the built commands, in one folder, as they are installed.
type Programs struct {
	Dir   string
	Conch string
	Guard string
	Dev   string // conch-dev; empty unless BuildDev was called
	// Daemon is conchd; empty unless BuildDaemon was called.
	Daemon string
}

const module = "github.com/go-coord/coord/cmd/"

// The folder of this test process, and what was built into it: once each.
var (
	folder   = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "conch-run-") })
	buildAll = sync.OnceValues(func() (Programs, error) { return build() })
	buildDev = sync.OnceValues(func() (string, error) { return compile("conch-dev", "conch-dev") })
	buildD   = sync.OnceValues(func() (string, error) { return compile("conchd", "conchd") })
)

// Build builds conch and its guard, statically, once in a test process. Cleanup removes them.
func Build(t T) Programs {
	t.Helper()
	p, err := buildAll()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// BuildDev is Build, and builds conch-dev as well.
func BuildDev(t T) Programs {
	t.Helper()
	p := Build(t)
	var err error
	if p.Dev, err = buildDev(); err != nil {
		t.Fatal(err)
	}
	return p
}

// BuildDaemon is Build, and builds conchd as well.
func BuildDaemon(t T) Programs {
	t.Helper()
	p := Build(t)
	var err error
	if p.Daemon, err = buildD(); err != nil {
		t.Fatal(err)
	}
	return p
}

// Cleanup removes what was built. It is for the end of a TestMain; nothing can be built afterwards.
func Cleanup() {
	if dir, err := folder(); err == nil {
		_ = os.RemoveAll(dir)
	}
}

func build() (p Programs, err error) {
	if p.Dir, err = folder(); err != nil {
		return p, err
	}
	if p.Conch, err = compile("conch", "conch"); err != nil {
		return p, err
	}
	p.Guard, err = compile("conch-guard", "holdguard")
	return p, err
}

// compile builds one command under the name that it is installed as.
func compile(command, name string) (string, error) {
	dir, err := folder()
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", out, module+command)
	cmd.Env = append(clean(os.Environ()), "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", command, err, msg)
	}
	return out, nil
}

// clean is environ without what acts on conch: a test says by itself what it wants.
func clean(environ []string) []string {
	var kept []string
	for _, v := range environ {
		if !strings.HasPrefix(v, "CONCH_") && !strings.HasPrefix(v, "ETCDCTL_") {
			kept = append(kept, v)
		}
	}
	return kept
}
