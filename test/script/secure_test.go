package script

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/test/run"
)

// passwords are those of the users that docs/security.md makes.
var passwords = map[string]string{
	"root": etcdtest.RootPassword, "conch": "conch-secret", "reports": "reports-secret", "uploads": "uploads-secret", "watcher": "watcher-secret",
	"operator": "operator-secret", "conchd": "conchd-secret", "jobs": "jobs-secret",
}

// block are the commands of a document that a comment before them marks.
var block = regexp.MustCompile("(?s)<!-- tested: ([a-z ]+) -->\n```sh\n(.*?)```")

// TestScriptsAsALeastPrivilegedUser plays the scripts once more, on an etcd with mutual TLS whose users and
// roles were made by the very commands of docs/security.md.
func TestScriptsAsALeastPrivilegedUser(t *testing.T) {
	t.Parallel()
	ca := etcdtest.NewCA(t)
	server := etcdtest.Secure(t, etcdtest.SecureOptions{CA: ca, Mutual: true})
	admin, mine := ca.Issue(etcdtest.Subject{Name: "admin"}), ca.Issue(etcdtest.Subject{Name: "host"})
	expired := ca.Issue(etcdtest.Subject{Name: "host", Expired: true})

	// The documented commands run as the administrator, who after the first of them has to say so.
	dir := t.TempDir()
	for user, password := range passwords {
		if err := os.WriteFile(filepath.Join(dir, user+".password"), []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	tools, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{
		"PATH=" + tools + string(filepath.ListSeparator) + os.Getenv("PATH"), "ETCDCTL_ENDPOINTS=" + server.Endpoint(),
		"ETCDCTL_CACERT=" + ca.File, "ETCDCTL_CERT=" + admin.Cert, "ETCDCTL_KEY=" + admin.Key,
	}
	blocks := block.FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 10 {
		t.Fatalf("docs/security.md has %d blocks of commands, want 10", len(blocks))
	}
	for _, commands := range blocks {
		cmd := exec.Command("/bin/sh", "-e", "-c", commands[2])
		cmd.Dir, cmd.Env = dir, environ
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("the commands for %s: %v\n%s", commands[1], err, out)
		}
		environ = append(environ, "ETCDCTL_USER=root", "ETCDCTL_PASSWORD="+etcdtest.RootPassword)
	}

	w := &world{client: server.As(t, "root", etcdtest.RootPassword), programs: run.BuildDev(t)}
	run.BuildDaemon(t) // into the same folder
	other := etcdtest.NewCA(t)
	secure := map[string]string{
		"CONCH_ENDPOINTS": server.Endpoint(), "CONCH_TTL": "60s",
		"CONCH_CACERT": ca.File, "CONCH_CERT": mine.Cert, "CONCH_KEY": mine.Key,
		"CONCH_USER": "conch", "CONCH_PASSWORD_FILE": filepath.Join(dir, "conch.password"),
		"SILENT": etcdtest.Silent(t), "REFUSED": etcdtest.Refused(t), "NOTGRPC": etcdtest.NotGRPC(t), "TRAP": etcdtest.Untouched(t),
		"HOSTPORT": strings.TrimPrefix(server.Endpoint(), "https://"), "PLAIN": etcdtest.Shared(t).Endpoint(),
		"CA": ca.File, "CERT": mine.Cert, "KEY": mine.Key, "OTHERCA": other.File, "EXPIRED": expired.Cert, "EXPIREDKEY": expired.Key,
		"SECRET": passwords["conch"], "PASSWORD": filepath.Join(dir, "conch.password"),
		"REPORTS": filepath.Join(dir, "reports.password"), "WATCHER": filepath.Join(dir, "watcher.password"),
		"UPLOADS": filepath.Join(dir, "uploads.password"), "OPERATOR": filepath.Join(dir, "operator.password"),
		"CONCHD": filepath.Join(dir, "conchd.password"), "JOBS": filepath.Join(dir, "jobs.password"),
	}
	scripts, err := filepath.Glob("*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("secure/*.txtar")
	if err != nil || len(more) == 0 {
		t.Fatalf("no scripts for a secured etcd: %v", err)
	}
	var files, jobs []string
	for _, script := range append(scripts, more...) {
		// These are about connections without TLS and users, and members of our own; and about reading everything there is.
		switch {
		case slices.Contains([]string{"unreachable.txtar", "access.txtar", "dev.txtar", "status-watch.txtar"}, script):
		case strings.HasPrefix(script, "cron-"):
			jobs = append(jobs, script)
		default:
			files = append(files, script)
		}
	}
	play(t, w, testscript.Params{Files: files}, secure)
	operator := maps.Clone(secure) // the first ones run beside these
	operator["CONCH_USER"], operator["CONCH_PASSWORD_FILE"] = "jobs", secure["JOBS"]
	play(t, w, testscript.Params{Files: jobs}, operator)
}
