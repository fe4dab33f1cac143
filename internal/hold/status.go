package hold

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Result is how a run under a hold ended, in one word.
type Result string

const (
	ResultChildExit   Result = "child-exit"   // the child ran to completion while held
	ResultChildSignal Result = "child-signal" // a signal ended the child while held
	ResultLost        Result = "lost"         // the hold was lost
	ResultEvicted     Result = "evicted"      // an operator took the hold away
	ResultNotAcquired Result = "not-acquired" // the hold was not to be had
	ResultNotStarted  Result = "not-started"  // held, but the command could not be executed: 126 or 127
	ResultFenced      Result = "fenced"       // the token is below the highest one seen
	ResultHookFailed  Result = "hook-failed"  // on-lose did not succeed, and nothing was released
	ResultSignalled   Result = "signalled"    // the wrapper was signalled before the child started
	ResultUnreachable Result = "unreachable"  // etcd, or the guard, could not be had or refused
)

// Status is what a status file holds: one JSON object that tells, for instance, a child's own exit 70
// from a lost hold. All fields are always there.
type Status struct {
	Outcome Result
	Code    int           // exit code of the wrapper
	Rev     uint64        // fencing token; 0 if the hold was never acquired
	Lease   int64         // etcd lease id, written in hexadecimal; 0 if the hold was never acquired
	Waited  time.Duration // from the start to the acquisition, or to the end
	Held    time.Duration // from the acquisition to the end
	Reason  string        // for people; safe on a terminal
}

// MarshalJSON writes the public layout: durations in milliseconds, the lease as hexadecimal text.
func (s Status) MarshalJSON() ([]byte, error) {
	lease := ""
	if s.Lease != 0 {
		lease = FormatLease(s.Lease)
	}
	return json.Marshal(struct {
		Outcome  Result `json:"outcome"`
		Code     int    `json:"code"`
		Rev      uint64 `json:"rev"`
		Lease    string `json:"lease"`
		WaitedMS int64  `json:"waited_ms"`
		HeldMS   int64  `json:"held_ms"`
		Reason   string `json:"reason"`
	}{s.Outcome, s.Code, s.Rev, lease, s.Waited.Milliseconds(), s.Held.Milliseconds(), Escape(s.Reason)})
}

// WriteStatus puts s at path, all at once: a reader sees the old file or the whole new one. The file is
// made beside path, never through a link, with mode 0644 less the umask. Anything at path that is no
// regular file (a link, a device, a folder) is left alone and is an error. It does not wait for the disk.
func WriteStatus(path string, s Status) (err error) {
	line, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write status file: %w", err)
	}
	if err := statusTarget(path); err != nil {
		return fmt.Errorf("write status file: %w", err)
	}
	f, err := createBeside(path)
	if err != nil {
		return fmt.Errorf("write status file: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(append(line, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write status file: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write status file: %w", err)
	}
	return nil
}

// CheckStatusFile reports what would keep WriteStatus from putting a file at path, as far as can be known before: it
// makes a file beside path and removes it.
func CheckStatusFile(path string) error {
	if err := statusTarget(path); err != nil {
		return err
	}
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// statusTarget refuses to replace what WriteStatus could not have made. A link that appears after this
// look is replaced by the rename, not followed.
func statusTarget(path string) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !fi.Mode().IsRegular():
		return &fs.PathError{Op: "replace", Path: path, Err: errors.New("not a regular file")}
	}
	return nil
}

// createBeside makes a new file in the folder of path, under a name that nothing has.
func createBeside(path string) (*os.File, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
	var err error
	for range 100 {
		name := "." + filepath.Base(path) + "." + strconv.FormatUint(rand.Uint64(), 36)
		var f *os.File
		if f, err = os.OpenFile(filepath.Join(filepath.Dir(path), name), flags, 0o644); err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return nil, err
}
