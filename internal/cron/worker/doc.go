// Package worker runs a start of a job as real processes: under the one guard of its daemon, as the user whom the job names,
// with the environment that it has there, and with an eye on what it writes.
//
// # What is not promised
//
// Output that a process writes is read as long as anything of the run lives. A process that hands its work to another service
// (docker run, systemd-run) ends when it ends. What a daemon that was killed has read and not written down is lost.
//
// # What is authoritative
//
// Package supervise: it starts, ends and proves. This package prepares what it starts, and reads the pipe.
//
// # Environment
//
// A job sees PATH, HOME, USER, LOGNAME and SHELL of its user, then the daemon's own variables if it says env_inherit, then its
// env, then CONCH_NAME, CONCH_REV, CONCH_LEASE, CONCH_TICK, CONCH_ATTEMPT and CONCH_KIND. Values that are files are read
// here, at each start, without their last line end.
package worker
