// Package postgres starts a PostgreSQL server for tests: a cluster of its own in a scratch folder, on a unix socket there and
// on no port, that ends with the tests.
//
// # What is not guaranteed
//
// Nothing that was committed survives a crash: it never waits for the disk. Everybody on the machine who can enter the
// folder, which is its user and root, is its superuser. Where PostgreSQL is not installed tests are skipped, with a line
// that says so, unless CI is set to true.
//
// PostgreSQL refuses to run as root: root's tests run it as the user postgres, else nobody.
package postgres
