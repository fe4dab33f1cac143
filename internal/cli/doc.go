// Package cli is what the commands share: where flags come from, what goes to stderr and how, how a client
// of etcd is made, and which exit code an error stands for. The commands themselves are in package command.
//
// # What is not guaranteed
//
//   - A line for stderr may be dropped. Whoever reads stderr may stop reading, and a wrapper that waits for
//     its reader would let its hold expire. Lines wait in a bounded queue; how many were dropped is said
//     once there is room again.
//   - A client that was made proves nothing. Only an answer does, so Reach makes a request, and gives it the
//     dial timeout in total, however many endpoints there are.
//   - A value from the environment is as trusted as one from the command line, and no more: both are checked
//     before anything is contacted.
//
// # What decides
//
// A flag, else its CONCH_ variable, else its ETCDCTL_ variable where there is one, else the default. A
// variable that is set and empty counts as not set. Flags that act on a single run (--wait, --status-file
// and so on) have no variable, because an outer wrapper's would act on an inner one.
//
// Files are read when their flags are set. What was in them, and the password, is in the Settings, which the
// guard gets; neither is ever looked up again. The password is a Secret, which prints as something else.
//
// # At each failure
//
//   - a bad flag, value or variable: one line that names it, its value and what is accepted; 64
//   - no endpoint answers within the dial timeout: one line with the reason; 69
//   - TLS does not come about: the same, with what is to be mended. It is found out in the handshake, where the
//     error still has a type
//   - etcd does not know the user, or has no users: 69 at once
//   - etcd refuses: 77 for want of permission, else 69, with what etcd said
//   - stderr is closed, a full pipe or a full disk: nothing is said, and all else goes on
//
// Text that comes from etcd or from the command line is hostile until hold.Escape has seen it. It is escaped
// where it is put into a line, once. Only this package and its commands print; only a main exits.
package cli
