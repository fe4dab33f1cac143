//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord"
)

const (
	childRole = "child"
	kinRole   = "kin"
)

// writer appends to the ledger in the name of one hold.
type writer struct {
	file *os.File
	hold event
}

// openWriter takes what is held from the environment, as a command under conch does.
func openWriter(ledger string) (*writer, error) {
	file, err := os.OpenFile(ledger, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	token, err := strconv.ParseUint(os.Getenv("CONCH_REV"), 10, 64)
	if err != nil {
		return nil, err
	}
	hold := event{Name: os.Getenv("CONCH_NAME"), Slot: os.Getenv("CONCH_SLOT"), Token: token, Pid: os.Getpid()}
	return &writer{file, hold}, nil
}

func (w *writer) say(what what, text string) error {
	e := w.hold
	e.At, e.What, e.Text = coord.Now(), what, text
	return note(w.file, e)
}

// child is the work that is done under an office or a slot: child LEDGER LOCKS. It takes the lock, which nobody may have, says so, and
// goes on for a while. The token says how: see manners.
func child(args []string) error {
	if len(args) != 2 {
		return errors.New("want LEDGER LOCKS")
	}
	terms := make(chan os.Signal, 4)
	signal.Notify(terms, syscall.SIGTERM)
	w, err := openWriter(args[0])
	if err != nil {
		return err
	}
	path := filepath.Join(args[1], w.hold.Name+"."+w.hold.Slot)
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return w.say(whatOverlap, err.Error()) // who reads that will do something about it
	}
	if err := w.say(whatStart, ""); err != nil {
		return err
	}
	m := mannersOf(w.hold.Token)
	if m.kin {
		if err := startKin(args[0], lock); err != nil {
			return err
		}
	}
	if m.crowd {
		if err := startCrowd(lock); err != nil {
			return err
		}
	}
	return m.work(w, terms)
}

// manners are how a child behaves.
type manners struct {
	span     time.Duration // it ends by itself
	stubborn bool          // SIGTERM does not end it
	late     time.Duration // from SIGTERM to its end
	kin      bool          // it leaves a descendant in a session of its own, which SIGTERM does not end
	crowd    bool          // many descendants, each in a session of its own
}

// mannersOf draws them from a token: the same hold always has the same.
func mannersOf(token uint64) manners {
	x := token * 0x9e3779b97f4a7c15 >> 40
	m := manners{span: 200*time.Millisecond + time.Duration(x%2000)*time.Millisecond}
	switch x >> 12 % 4 {
	case 0: // it tidies up
		m.late = 100 * time.Millisecond
	case 1:
		m.stubborn, m.kin = true, true
	case 2:
		m.kin, m.crowd = true, x>>14%4 == 0
	}
	return m
}

// work goes on until the time is over, or SIGTERM comes and is listened to.
func (m manners) work(w *writer, terms <-chan os.Signal) error {
	over := time.After(m.span)
	for {
		select {
		case <-over:
			return w.say(whatStop, "")
		case <-terms:
			if err := w.say(whatTerm, ""); err != nil {
				return err
			}
			if !m.stubborn {
				time.Sleep(m.late) // it has something to tidy up
				return w.say(whatStop, "")
			}
		}
	}
}

// startKin starts a descendant that stays, in a session of its own. It has the lock as long as it lives.
func startKin(ledger string, lock *os.File) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, kinRole, ledger)
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// crowd is how many descendants a child has that has many.
const crowd = 100

// startCrowd starts many descendants that stay. They have the lock, too.
func startCrowd(lock *os.File) error {
	for range crowd {
		cmd := exec.Command("sleep", "infinity")
		cmd.ExtraFiles = []*os.File{lock}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
	}
	return nil
}

// kin stays until it is killed.
func kin(args []string) error {
	if len(args) != 1 {
		return errors.New("want LEDGER")
	}
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM, syscall.SIGHUP)
	w, err := openWriter(args[0])
	if err != nil {
		return err
	}
	if err := w.say(whatKin, ""); err != nil {
		return err
	}
	for range terms {
	}
	return nil
}
