package postgres

import "syscall"

// attributes: the kernel ends the server when the thread that started it has ended.
func attributes(who *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: who, Pdeathsig: syscall.SIGQUIT}
}
