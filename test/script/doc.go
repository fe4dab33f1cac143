// Package script runs the scripts in this folder: what the built commands do, one topic a file.
//
// # What is not guaranteed
//
// Nothing about time. A script says what happens and in which order; it waits for a key, a file or the end of a
// process, and never for a while. What takes a fault (a process killed, a cluster that is cut) is in the
// tests beside this folder.
//
// # What a script has
//
// An etcd that all scripts share, an office of its own in $OFFICE, and nothing else of ours in its
// environment but CONCH_ENDPOINTS and CONCH_TTL. $SILENT, $REFUSED and $NOTGRPC are endpoints of those kinds, $TRAP is one that
// fails the test when it is contacted.
//
// The scripts run a second time, but for some that are about plain connections, on an etcd with mutual TLS, as a user who
// may do no more than it has to; those in the folder secure run there only. Those in the folder alone have an etcd that
// nobody else uses. Beside the commands of testscript:
//
//	exits CODE PROGRAM ARG...    run a program that has to exit with CODE
//	spawn NAME PROGRAM ARG...    start one; its output goes to NAME.out and NAME.err when it has ended
//	signal NAME SIGNAL           send a signal to one that was spawned
//	ends NAME CODE               wait for its end
//	waitkey OFFICE N             wait until N keys stand below an office
//	waitfile FILE                wait until a file exists
//	waitlog NAME TEXT            wait until a line of its stderr holds TEXT
//	waitout NAME TEXT            wait until a line of its stdout holds TEXT
//	holder OFFICE N FILE         write the value of the Nth key, 0 leads, to a file
//	revoke OFFICE N              revoke the lease of the Nth key
//	delete OFFICE N              delete the Nth key
//	foreign OFFICE VALUE         have a client that is none of ours queue
//	unclean OFFICE               leave the record of a hold of which nothing else is left; sema/NAME/MAX/SLOT: of a slot
//	request OFFICE N [TIME]      ask the holder of the Nth key to leave, or have asked it at a time
//	host UUID FILE               wait for the key of a host and write its value to a file
//	nohost UUID                  wait until there is none
//	losehost UUID                delete it
//	puthost UUID VALUE           put the key of a host
//	messages FILE MSG...         the log lines in a file, or in stderr, are these and no others
//	lines FILE N                 a file, or stdout or stderr, has N lines
//
// Where it says OFFICE, AREA/NAME are the keys that another area has of a name: sema/NAME are the candidates for a
// semaphore, slot/NAME its slots, open/sema/NAME their open records.
package script
