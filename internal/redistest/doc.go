// Package redistest gives a test a running redis-server in one call, and connections to it that lose answers.
//
// What is not guaranteed: the server is the one that is installed, whatever its version. Where there is none, a test that
// asks for one is skipped, with one line that says so; in CI (CI=true) it fails.
//
// A server listens on a socket in a folder of its own, and on no port. Nothing is saved unless Options say so. It ends with
// its test, and with the test process, however that ends: the kernel signals it when the thread that forked it does,
// which waits for it.
package redistest
