package binary

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

const root = "../../.."

// shipped are the commands that users install, and what holds for each.
var shipped = map[string]struct { // by folder below cmd/
	maxSize int64 // bytes, stripped
	why     string
	absent  *regexp.Regexp // symbols
}{
	"conch": {
		maxSize: 19_000_000,
		why:     "it stays in memory as long as its child runs, on every host of a fleet",
		absent:  regexp.MustCompile(`^(go\.etcd\.io/etcd/server/|go\.etcd\.io/bbolt|go\.etcd\.io/raft/|net/http\.\(\*Server\))`),
	},
	"conch-guard": {
		maxSize: 4_000_000,
		why:     "it starts before anything is held, in milliseconds",
		absent:  regexp.MustCompile(`^(go\.etcd\.io/|google\.golang\.org/|net/http\.|crypto/tls\.)`),
	},
}

// present gives the commands that there are: what is planned starts to be checked when it appears.
func present(t *testing.T) (names []string) {
	t.Helper()
	for name := range shipped {
		if sources, _ := filepath.Glob(filepath.Join(root, "cmd", name, "*.go")); len(sources) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// build compiles a command statically, as the Makefile does, and gives its path.
func build(t *testing.T, name, ldflags string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-tags", "grpcnotrace", "-ldflags", ldflags, "-o", out, "./cmd/"+name)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, msg)
	}
	return out
}

func TestShippedBinariesAreSmallAndStatic(t *testing.T) {
	t.Parallel()
	for _, name := range present(t) {
		s, path := shipped[name], build(t, name, "-s -w")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes stripped", name, info.Size())
		if info.Size() > s.maxSize {
			t.Errorf("%s has %d bytes stripped, at most %d: %s", name, info.Size(), s.maxSize, s.why)
		}
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				t.Errorf("%s asks for a dynamic loader: it has to run on a system that has none", name)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// symbol is the name in a line of go tool nm: it stands last, and may hold spaces.
var symbol = regexp.MustCompile(`(?m)^ *[0-9a-f]* [A-Za-z?] (.+)$`)

func TestShippedBinariesLinkNoServer(t *testing.T) {
	t.Parallel()
	for _, name := range present(t) {
		s := shipped[name]
		out, err := exec.Command("go", "tool", "nm", build(t, name, "")).Output()
		if err != nil {
			t.Fatalf("list symbols of %s: %v", name, err)
		}
		found, hasMain := linked(out, s.absent)
		for _, bad := range found {
			t.Errorf("%s links %s", name, bad)
		}
		if !hasMain {
			t.Errorf("%s shows no main.main: the list of symbols is not what it seems", name)
		}
	}
}

// linked gives the symbols of a list that should be absent, and whether the list holds main.main.
func linked(list []byte, absent *regexp.Regexp) (found []string, hasMain bool) {
	for _, m := range symbol.FindAllSubmatch(list, -1) {
		hasMain = hasMain || string(m[1]) == "main.main"
		if absent.Match(m[1]) {
			found = append(found, string(m[1]))
		}
	}
	return found, hasMain
}

// TestLinkedServersAreSeen proves the search on a list in which there is something to find.
func TestLinkedServersAreSeen(t *testing.T) {
	t.Parallel()
	const list = `  5f3a20 T go.etcd.io/etcd/client/v3.(*Client).Get
  6b1100 T main.main
  6b2200 T net/http.(*Client).Do
  6b3300 T net/http.(*Server).Serve
  6b4400 T go.etcd.io/etcd/server/v3/embed.StartEtcd
         U net/http.(*Server).Close
  6b5500 t go.etcd.io/bbolt.(*DB).Update[go.shape.struct { a int }]
`
	found, hasMain := linked([]byte(list), shipped["conch"].absent)
	want := []string{
		"net/http.(*Server).Serve", "go.etcd.io/etcd/server/v3/embed.StartEtcd", "net/http.(*Server).Close",
		"go.etcd.io/bbolt.(*DB).Update[go.shape.struct { a int }]",
	}
	if !slices.Equal(found, want) || !hasMain {
		t.Errorf("found %q and main %v, want %q and main", found, hasMain, want)
	}
}
