//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-coord/coord"
)

// event is something that happened: a line of the ledger or of the history.
type event struct {
	At   time.Duration `json:"at"` // CLOCK_BOOTTIME
	What what          `json:"what"`
	// Of a child, and of what else a workload writes down.
	Name  string `json:"name,omitempty"`  // the office, semaphore, lock, job or host
	Slot  string `json:"slot,omitempty"`  // of a semaphore
	Token uint64 `json:"token,omitempty"` // CONCH_REV
	Pid   int    `json:"pid,omitempty"`
	// Of a call of a program's, and of what it was told: what is written or read, and until when a lease is good.
	Value string        `json:"value,omitempty"`
	Until time.Duration `json:"until,omitempty"`
	// Of a part, and of what it starts.
	Part string `json:"part,omitempty"`
	Code int    `json:"code,omitempty"` // how it ended, 128+n: by signal n
	// Of a fault.
	Fault  string `json:"fault,omitempty"`
	Target string `json:"target,omitempty"`
	ID     int    `json:"id,omitempty"` // tells faults of a run apart: its injection and its end have the same; so calls of a process
	// Text is what else there is to say, for people and for one workload.
	Text string `json:"text,omitempty"`
}

// what says what kind of an event it is. Workloads may have more of them.
type what string

const (
	// A child has the lock of its office or slot, and was there alone; its descendant that stays; it was told to stop; it
	// ends; somebody else had the lock.
	whatStart, whatKin, whatTerm, whatStop, whatOverlap what = "start", "kin", "term", "stop", "overlap"
	// A part was started; it ended; it did not when it was told to stop.
	whatPart, whatExit, whatStuck what = "part", "exit", "stuck"
	// A fault was injected, found nobody to hit, ended.
	whatFault, whatMiss, whatHeal what = "fault", "miss", "heal"
	// Everything works again, and nothing happens any more; the parts are told to stop.
	whatCalm, whatEnd what = "calm", "end"
	// Something is wrong, as the auditor found.
	whatViolation what = "violation"
)

// history is what happened in a run, in memory and on disk. It is the run's own half; the ledger is the other one.
type history struct {
	ledger string

	mu   sync.Mutex
	file *os.File
	own  []event
	fail error // of a write, told at the end
}

func newHistory(path, ledger string) (*history, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &history{ledger: ledger, file: file}, nil
}

// add notes an event, and when it was noted unless it says so.
func (h *history) add(e event) event {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.At == 0 {
		e.At = coord.Now()
	}
	h.own = append(h.own, e)
	if err := note(h.file, e); err != nil && h.fail == nil {
		h.fail = err
	}
	return e
}

// events are those of the run and those of the ledger so far, in the order of their time.
func (h *history) events() ([]event, error) {
	h.mu.Lock()
	all, err := slices.Clone(h.own), h.fail
	h.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("write history: %w", err)
	}
	written, err := readEvents(h.ledger)
	if err != nil {
		return nil, err
	}
	all = append(all, written...)
	slices.SortStableFunc(all, func(a, b event) int { return int(a.At - b.At) })
	return all, nil
}

// save makes one file of history and ledger, in the order of time.
func (h *history) save() error {
	all, err := h.events()
	if err != nil {
		return err
	}
	if err := h.file.Truncate(0); err != nil {
		return err
	}
	out := bufio.NewWriter(h.file) // nobody else writes any more
	for _, e := range all {
		err = errors.Join(err, note(out, e))
	}
	return errors.Join(err, out.Flush(), h.file.Close(), os.RemoveAll(h.ledger))
}

// note writes one line by one write: with O_APPEND nothing comes between its bytes.
func note(file io.Writer, e event) error {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = file.Write(append(line, '\n'))
	}
	return err
}

// readEvents reads a file of events; one that is not there has none. A line is whole, or is being written, or its writer was
// killed in it: then it was the last.
func readEvents(path string) (all []event, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			if bytes.HasSuffix(text, lines.Bytes()) {
				break
			}
			return nil, fmt.Errorf("read %s: %w: %q", path, err, lines.Bytes())
		}
		all = append(all, e)
	}
	return all, errors.Join(err, lines.Err())
}
