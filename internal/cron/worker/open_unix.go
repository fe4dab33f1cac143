//go:build unix

package worker

import "syscall"

// noFollow refuses a link in the place of the file.
const noFollow = syscall.O_NOFOLLOW
