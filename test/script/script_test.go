package script

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

func TestMain(m *testing.M) {
	if code, ok := etcdtest.Role(); ok {
		os.Exit(code)
	}
	run.Unignore()
	code := m.Run()
	etcdtest.CloseShared()
	run.Cleanup()
	os.Exit(code)
}

func TestScripts(t *testing.T) {
	t.Parallel()
	server := etcdtest.Shared(t)
	w := &world{client: server.Client(t), programs: run.BuildDev(t)}
	play(t, w, testscript.Params{Dir: "."}, plain(t, server))
}

// TestScriptsOnAnEtcdOfTheirOwn plays those that look at everything there is.
func TestScriptsOnAnEtcdOfTheirOwn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("alone/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		server := etcdtest.One(t)
		w := &world{client: server.Client(t), programs: run.BuildDev(t)}
		play(t, w, testscript.Params{Files: []string{file}}, plain(t, server))
	}
}

// plain is the environment of scripts on an etcd without TLS and users.
func plain(t *testing.T, server *etcdtest.Server) map[string]string {
	return map[string]string{
		"CONCH_ENDPOINTS": server.Endpoint(),
		"CONCH_TTL":       "60s", // so that a machine which is busy loses no hold
		"SILENT":          etcdtest.Silent(t),
		"REFUSED":         etcdtest.Refused(t),
		"NOTGRPC":         etcdtest.NotGRPC(t),
		"TRAP":            etcdtest.Untouched(t),
		"SHARED":          server.Endpoint(),
	}
}

// play runs scripts, each with an office of its own.
func play(t *testing.T, w *world, p testscript.Params, environ map[string]string) {
	p.RequireUniqueNames = true
	p.Setup = func(env *testscript.Env) error {
		for name, value := range environ {
			env.Setenv(name, value)
		}
		env.Setenv("PATH", w.programs.Dir+string(filepath.ListSeparator)+env.Getenv("PATH"))
		// The folder above has a number of its own in each run.
		env.Setenv("OFFICE", filepath.Base(env.WorkDir)+"."+filepath.Base(filepath.Dir(env.WorkDir)))
		env.Values[spawnedKey{}] = map[string]*run.Process{}
		return nil
	}
	p.Cmds = w.commands()
	testscript.Run(t, p)
}

// world is what all scripts share.
type world struct {
	client   *clientv3.Client
	programs run.Programs
}

// words are the msg of the log lines of a text, in order; other lines as they are.
func words(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		_, rest, ok := strings.Cut(line, " msg=")
		switch {
		case !ok:
			rest = line
		case strings.HasPrefix(rest, `"`):
			rest, _, _ = strings.Cut(rest[1:], `"`)
		default:
			rest, _, _ = strings.Cut(rest, " ")
		}
		all = append(all, rest)
	}
	return all
}
