//go:build !linux

package etcdtest

import "syscall"

// dieWithParent does nothing here: a member outlives a test process that is killed.
func dieWithParent() *syscall.SysProcAttr { return nil }

// frozen cannot tell here, and takes a signal that was sent for one that was taken.
func frozen(int) (bool, error) { return true, nil }
