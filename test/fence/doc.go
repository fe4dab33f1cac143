// Package fence proves the guards of coordination/fence on what they guard: a real SQLite, a real PostgreSQL, an etcd
// server, files, HTTP.
//
// # The paused writer
//
// A holder is paused in the middle of its write; its successor, who has a higher token, writes; the holder wakes and goes
// on. Where and until when it is paused is random. Whatever comes of it, no write of the lower token may land after one of
// the higher: the history of the data, in the order in which it came about, has rising tokens only. A thousand times for
// each guard, and without the guard, to see that the same harness finds what a guard prevents.
//
// What is not guaranteed: the harness runs in one process, so "paused" is a goroutine that waits; processes that are
// stopped by SIGSTOP are in test/examples.
package fence
