// Package crontab reads crontabs and says of each line what becomes of it: a job, a variable, nothing, or a line that is not taken,
// and why.
//
// # What is not promised
//
//   - Not that a job does what the line did. It runs on another host, perhaps, in another folder, with other things installed. What is known to
//     be different is said: in the notes of the line, and in those of the report.
//   - Not that every line is taken. Where crons disagree on what a line means, or where it means something that no other host can know
//     (@reboot), it is refused, with what to write instead. Nothing is guessed.
//   - Not that names stay: they are suggestions, from the command. The same crontab gives the same names, and a line that is added at its end
//     renames none.
//
// # What crons agree on
//
// The file is read as Paul Vixie's cron and its descendants do (Debian's, cronie, FreeBSD's, OpenBSD's): leading blanks, comments, NAME = value
// with quotes, which holds for the lines that follow; five fields or one of their words; in system crontabs a user; the rest is the
// command, whose first % that is not escaped begins the standard input. There is no continuation of lines, no comment after a command, and
// no expansion of variables in values.
//
// # Where they do not
//
//	5/15       the value alone in Vixie's, an error in others, 5-59/15 in many programs that are no cron
//	22-4       an error, or never, or a range that wraps
//	a~b        a random value in cronie and OpenBSD's, drawn anew when cron starts
//	\\         one backslash in Debian's and FreeBSD's, two in cronie and OpenBSD's
//	-n -q -s   flags before the command in OpenBSD's and FreeBSD's
//	CRON_TZ    the zone of what follows in cronie, a mere variable in others; it is taken as the zone, and said
//
// # What a job becomes
//
// The command is a script, since cron hands it to a shell. HOME is where cron starts commands, so it becomes the job's folder. cron
// ends no run, so the job gets a long time, not the default. Whether runs may overlap is not taken over: cron never asks, and
// a job of ours does, so the report says it.
package crontab
