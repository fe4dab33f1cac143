//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const jobRole = "job"

// Manners of a job.
const (
	jobFree   = "free"   // others of the same job may be alive
	jobAlone  = "alone"  // nobody else of the job is, in the whole cluster
	jobHost   = "host"   // nor on this host: its name is that of the folder
	jobKin    = "kin"    // alone, and it leaves a descendant
	jobFailed = "failed" // alone, and its first attempt fails, mostly
)

// errJob is how a run fails that is to fail.
var errJob = errors.New("this attempt fails")

// job is what a job runs: job LEDGER LOCKS SPAN MANNER. It writes down that it was started, and lives for a while.
func job(args []string) error {
	if len(args) != 4 {
		return errors.New("want LEDGER LOCKS SPAN MANNER")
	}
	terms := make(chan os.Signal, 4)
	signal.Notify(terms, syscall.SIGTERM)
	span, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	w, err := openWriter(args[0])
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	w.hold.Part = filepath.Base(dir)
	w.hold.Value = os.Getenv("CONCH_TICK") + " " + os.Getenv("CONCH_ATTEMPT")
	path := filepath.Join(args[1], "job."+w.hold.Name)
	if args[3] == jobHost {
		path += "." + w.hold.Part
	}
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	began := whatStart
	if args[3] != jobFree && unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		began = whatOverlap
	}
	if err := w.say(began, ""); err != nil {
		return err
	}
	if args[3] == jobKin {
		if err := startKin(args[0], lock); err != nil {
			return err
		}
	}
	select {
	case <-time.After(span):
	case <-terms:
	}
	if err := w.say(whatStop, ""); err != nil {
		return err
	}
	if args[3] == jobFailed && os.Getenv("CONCH_ATTEMPT") == "1" && w.hold.Token%4 > 0 {
		return fmt.Errorf("%w, token %d", errJob, w.hold.Token)
	}
	return nil
}
