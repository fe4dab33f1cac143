package postgres

import (
	"bufio"
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
)

// errMissing says that PostgreSQL is not installed.
var errMissing = errors.New("PostgreSQL is not installed (apt-get install postgresql)")

// startWithin is how long a server may take to start, on a machine that is busy.
const startWithin = 2 * time.Minute

// shared is the one server of this test process.
var shared struct {
	sync.Mutex
	server *server
	err    error
}

// server is a running server.
type server struct {
	dir string // of the socket, and of all else
	cmd *exec.Cmd
}

// DSN is where the server of this test process is, which is started at its first use. Without one the test is skipped, or
// fails where CI is true.
func DSN(t testing.TB) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = start()
	}
	switch {
	case errors.Is(shared.err, errMissing) && os.Getenv("CI") != "true":
		t.Skip(shared.err)
	case shared.err != nil:
		t.Fatalf("postgres: %v", shared.err)
	}
	return "host=" + shared.server.dir + " user=postgres dbname=postgres"
}

// Open opens a database of its own for a test.
func Open(t testing.TB, schema string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", DSN(t)+" search_path="+schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	return db
}

// Close ends the server, if there is one. It is for the end of a TestMain.
func Close() {
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.stop()
		shared.server = nil
	}
}

// Program finds one of PostgreSQL's programs, which Debian keeps out of PATH.
func Program(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return "", errMissing
	}
	return found[len(found)-1], nil
}

// start makes a cluster and starts its server.
func start() (*server, error) {
	initdb, err := Program("initdb")
	if err != nil {
		return nil, err
	}
	postgres, err := Program("postgres")
	if err != nil {
		return nil, err
	}
	who, err := identity()
	if err != nil {
		return nil, err
	}
	dir, err := scratch(who)
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	data := filepath.Join(dir, "data")
	made := command(who, dir, initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := made.CombinedOutput(); err != nil {
		s.stop()
		return nil, fmt.Errorf("make cluster: %w\n%s", err, out)
	}
	s.cmd = command(who, dir, postgres, "-D", data, "-k", dir, "-c", "listen_addresses=",
		"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "max_connections=100")
	if err := s.run(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// run starts the server and returns when it says that it takes connections.
func (s *server) run() error {
	log, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	ready, said := make(chan error, 1), bytes.Buffer{}
	go func() {
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "ready to accept connections") {
				ready <- nil
			}
			if said.Len() < 64<<10 {
				said.WriteString(lines.Text() + "\n")
			}
		}
		select {
		case ready <- fmt.Errorf("the server ended:\n%s", said.String()):
		default:
		}
	}()
	select {
	case err := <-ready:
		return err
	case <-time.After(startWithin):
		return errors.New("the server does not start")
	}
}

// stop ends the server at once, and removes all that it had.
func (s *server) stop() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT) // its backends too; nothing has to be written
		_ = s.cmd.Wait()
	}
	_ = os.RemoveAll(s.dir)
}

// identity is whom the server runs as; nil: as this process.
func identity() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(found.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(found.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("there is neither a user postgres nor nobody to run PostgreSQL as")
}

// scratch makes a folder that the server's user owns, in memory where there is such a place. Its path is short, as that of a
// socket has to be.
func scratch(who *syscall.Credential) (string, error) {
	parent := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		parent = "/dev/shm"
	}
	dir, err := os.MkdirTemp(parent, "pgtest")
	if err == nil && who != nil {
		err = os.Chown(dir, int(who.Uid), int(who.Gid))
	}
	return dir, err
}

// command is one of PostgreSQL's programs as its user, with nothing of ours in its environment. It dies with us.
func command(who *syscall.Credential, dir, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = attributes(who)
	return cmd
}
