package embed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/version"
	"golang.org/x/sys/unix"
)

// Errors of the state directory.
var (
	// ErrNotPrivate is returned when the state directory belongs to, or may be changed by, another user.
	ErrNotPrivate = errors.New("embed: state directory is not private to this user")
	// ErrNewerState is returned when a newer version wrote the state directory.
	ErrNewerState = errors.New("embed: state directory was written by a newer version")

	errLocked = errors.New("embed: a member holds the lock")
)

// DefaultDir is conch-dev's state directory by the XDG rules: below $XDG_STATE_HOME when that is an
// absolute path, else below $HOME/.local/state.
func DefaultDir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "conch-dev"), nil
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "conch-dev"), nil
	}
	return "", errors.New("find state directory: neither XDG_STATE_HOME nor HOME is set")
}

// state is a state directory: lock, member.json, version, starts, log, etcd.sock, data.
type state string

func (s state) path(name string) string { return filepath.Join(string(s), name) }

// record says where the member is. It is a hint: see the package comment.
type record struct {
	PID      int       `json:"pid"`
	Endpoint string    `json:"endpoint"`
	Started  time.Time `json:"started"`
}

// create makes the directory, and refuses one that others could tamper with.
func (s state) create() error {
	if err := os.MkdirAll(string(s), 0o700); err != nil {
		return fmt.Errorf("create state directory: %w", err)
	}
	info, err := os.Stat(string(s))
	if err != nil {
		return fmt.Errorf("create state directory: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("use state directory %s: %w", s, ErrNotPrivate)
	}
	return nil
}

// lock takes the lock without waiting: errLocked when a member, or somebody who starts one, has it. The
// lock lasts until the last copy of the open file is closed, in whatever process.
func (s state) lock() (*os.File, error) {
	f, err := os.OpenFile(s.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, fmt.Errorf("lock state directory: %w", err)
}

// read gives the record, or false when there is none that can be read.
func (s state) read() (record, bool) {
	var r record
	b, err := os.ReadFile(s.path("member.json"))
	if err != nil || json.Unmarshal(b, &r) != nil || r.Endpoint == "" {
		return record{}, false
	}
	return r, true
}

// write replaces the record in one step. Only the holder of the lock calls it.
func (s state) write(r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write member record: %w", err)
	}
	return s.replace("member.json", append(b, '\n'))
}

func (s state) replace(name string, b []byte) error {
	tmp := s.path(name + ".new")
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(tmp, s.path(name)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// claim notes which etcd owns the data: an older one must not open what a newer one wrote.
func (s state) claim() error {
	b, err := os.ReadFile(s.path("version"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read version of state directory: %w", err)
	}
	if theirs := strings.TrimSpace(string(b)); newer(theirs, version.Version) {
		return fmt.Errorf("use state directory %s (etcd %.20q): %w: take that version, or remove the directory", s, theirs, ErrNewerState)
	}
	return s.replace("version", []byte(version.Version+"\n"))
}

// newer reports whether version a is of a later minor release than b. What cannot be read is not newer.
func newer(a, b string) bool {
	var a1, a2, b1, b2 int
	if _, err := fmt.Sscanf(a, "%d.%d", &a1, &a2); err != nil {
		return false
	}
	if _, err := fmt.Sscanf(b, "%d.%d", &b1, &b2); err != nil {
		return false
	}
	return a1 > b1 || a1 == b1 && a2 > b2
}

// begin counts a start and moves data aside with which the last two never became ready; ready, below, sets
// the count back. It reports whether it did.
func (s state) begin() (moved bool, err error) {
	b, _ := os.ReadFile(s.path("starts"))
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	if n >= 2 {
		if err := os.RemoveAll(s.path("data.broken")); err != nil {
			return false, fmt.Errorf("move broken data aside: %w", err)
		}
		if err := os.Rename(s.path("data"), s.path("data.broken")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("move broken data aside: %w", err)
		}
		n, moved = 0, true
	}
	return moved, s.replace("starts", []byte(strconv.Itoa(n+1)+"\n"))
}

func (s state) ready() error { return s.replace("starts", []byte("0\n")) }

// log opens the member's log for appending, emptied when it has grown large.
func (s state) log() (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(s.path("log")); err == nil && info.Size() > 1<<20 {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(s.path("log"), flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open member log: %w", err)
	}
	return f, nil
}
