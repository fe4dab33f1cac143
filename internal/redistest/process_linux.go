package redistest

import "syscall"

// dieWithParent lets the kernel kill a child when the thread that forked it ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
