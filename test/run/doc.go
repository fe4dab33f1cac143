// Package run builds the commands as they are shipped and runs them as processes, for tests of what only
// processes can show: signals, exit codes, what is left behind.
//
// # What is not guaranteed
//
// A process that a test started and did not wait for is killed when the test ends. What it had started is
// its guard's to end: a test that stops a guard has to let it go on, or end what is left by itself.
//
// Wait returns when the process has been reaped and its output has ended. Output that something else still
// holds open is given up after a moment: Stdout and Stderr then have what had come by that time.
package run
