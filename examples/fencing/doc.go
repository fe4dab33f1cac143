// Command fencing shows why a lock is not enough, and what is: it takes one command, and ends with 0.
//
//	go run ./examples/fencing
//
// Two processes contend for an office, each to write a report into a database. The first one wins, looks whether it holds, and
// is stopped (SIGSTOP) right before its write, for longer than its lease: as by a debugger, or a virtual machine that moves.
// The second one wins the office and writes. Then the first one wakes up (SIGCONT) and goes on where it was. Without a guard
// its report lands over that of its successor. With fence.SQL in the transaction that writes it is refused.
//
// The etcd is a member inside this process, the database a SQLite in a scratch folder. With FENCING_POSTGRES set to a
// connection string the same happens on that PostgreSQL too, in a schema of its own that is dropped at the end; it is a variable,
// because connection strings hold passwords, and everybody can read a command line.
//
// What it does not show: anything about time. The lease is two seconds so that nobody has to wait; nothing depends on that.
package main
