// Package manifest reads and writes files of jobs: what "conch cron apply" takes, and what "conch cron export" gives. A file holds any
// number of documents, in YAML or JSON. A document is one job, with its name beside its fields, or several by their names:
//
//	name: backup                      jobs:
//	schedule: 30 2 * * *                backup: {schedule: 30 2 * * *, cmd: [backup, --all]}
//	cmd: [backup, --all]                report: {schedule: "@daily", cmd: [report]}
//
// # What is not promised
//
//   - Not that comments, order and quotes survive: they are read, and not kept.
//   - Not that all of YAML is understood. A merge key (<<), a tag of one's own and a key that is no text are refused. Aliases are followed.
//   - Not that what is read may be printed. It was written by others. Only faults, and what [YAML] writes, are safe on a terminal.
//
// # What is authoritative
//
// Package job says what a job is. Here YAML is made into the JSON that it reads, by what was typed and not by what YAML makes of it: a
// number that JSON would not write so, such as 0022, is a text, and no key becomes "true" because it was called on. All that is wrong
// is found before anything is done, job by job; only a document that is no YAML ends its file.
//
// # Bounds
//
// One job is no larger than package job lets it be, however often its aliases repeat themselves, and nothing nests deeper than 32 levels.
package manifest
