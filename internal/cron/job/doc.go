// Package job says what a job is: the spec that stands in etcd at /conch/v1/cron/job/<name>, as one line of JSON. It reads it,
// judges it, writes it, and answers what the spec says where the spec says nothing: no other package knows a default.
//
// # What is not promised
//
//   - Not that a valid job can run. Whether its user exists, its command is installed, a node has its labels or lets it run as that user
//     is known on nodes only, and changes. A node says so in the result.
//   - Not that a valid job has a tick to come: @manual has none and @at is over some day. [schedule.Schedule.Check] says so, to whoever
//     has a clock. There is none here.
//   - Not that the spec is harmless. It names a command: who can write the key can run it. Its texts were written by others and are
//     hostile until they are escaped; only errors of this package are safe to print as they are.
//   - Not that a job is kept as it was typed: order, white space and the zone of times are not. What was said is, be it the
//     default; what was not said stays unsaid.
//
// # Reading
//
// [Parse] is strict, since a field that is overlooked is a job that does something else than its author thinks: a name that is not
// known, at any depth, a type that is not the field's, a name that comes twice, a zero where nothing is meant by it, are errors.
// They name the field by its path, the value, what is accepted, and what was probably meant. Nothing is guessed. What is read
// is not built into a tree first: each field knows the one shape it takes, so no nesting and no size of hostile input costs more than its
// bytes.
//
// # One table
//
// All that is known of a field by itself stands in one line of a table: its name, where it goes, how it is read and what it may be
// (table.go). Reading walks the table, and so does [Job.Validate], for jobs that were not read but made from flags. What two fields
// have to do with each other is said beside the types, in their whole method. The JSON Schema ([Schema]) is written by hand, for
// editors and for people, and tests hold it against the table and the types.
//
// # Zero
//
// In a [Job], zero is "not said", everywhere, and the methods give the default. So a zero can not be said where it would be something
// else than the default: "kill_after": "0s" is an error and not 5 seconds.
package job
