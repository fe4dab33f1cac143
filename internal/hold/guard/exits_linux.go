package guard

import (
	"golang.org/x/sys/unix"
)

// exits knows which leaders have ended without asking each of them: with a thousand alive, and a thousand ends a second, to
// ask every one at every end takes all the time there is.
//
// A leader is watched by a pidfd, which is readable once it is a zombie: the kernel says so before it sends SIGCHLD. Where there is
// no descriptor left for one, that leader is asked each time. Whether one was stopped is not to be seen in a pidfd: the kernel
// is asked whether anybody was, and when somebody was, so is every leader.
type exits struct {
	epoll int
	fds   map[*run]int
	runs  map[int32]*run // by what the kernel reports: the number of the descriptor
	blind map[*run]bool  // not watched
	ready []unix.EpollEvent
}

func newExits() exits {
	x := exits{epoll: -1, fds: map[*run]int{}, runs: map[int32]*run{}, blind: map[*run]bool{}}
	if fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC); err == nil {
		x.epoll = fd
	}
	return x
}

// watch begins with a leader that nobody has reaped.
func (x *exits) watch(r *run) {
	x.blind[r] = true
	fd, err := unix.PidfdOpen(r.pid, 0)
	if err != nil {
		return
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	if unix.EpollCtl(x.epoll, unix.EPOLL_CTL_ADD, fd, &event) != nil {
		_ = unix.Close(fd)
		return
	}
	delete(x.blind, r)
	x.fds[r], x.runs[int32(fd)] = fd, r
}

// unwatch ends it. That is said to the kernel in so many words: a child between fork and exec has a copy of the descriptor.
func (x *exits) unwatch(r *run) {
	delete(x.blind, r)
	if fd, ok := x.fds[r]; ok {
		_ = unix.EpollCtl(x.epoll, unix.EPOLL_CTL_DEL, fd, nil)
		_ = unix.Close(fd)
		delete(x.fds, r)
		delete(x.runs, int32(fd))
	}
}

// stirred lists the leaders that may have ended or been stopped. It leaves out none that has.
func (x *exits) stirred(runs []*run) []*run {
	if code, _ := waitid(unix.P_ALL, 0, unix.WSTOPPED|unix.WNOWAIT, nil); code != 0 {
		return runs
	}
	var some []*run
	for r := range x.blind {
		some = append(some, r)
	}
	if len(x.fds) == 0 {
		return some
	}
	// Room for all: who is left out would wait for the next end of somebody else.
	if len(x.ready) < len(x.fds) {
		x.ready = make([]unix.EpollEvent, 2*len(x.fds))
	}
	n, err := readOnce(func() (int, error) { return unix.EpollWait(x.epoll, x.ready, 0) })
	if err != nil {
		return runs
	}
	for _, e := range x.ready[:n] {
		some = append(some, x.runs[e.Fd])
	}
	return some
}

func (x *exits) close() {
	for _, fd := range x.fds {
		_ = unix.Close(fd)
	}
	_ = unix.Close(x.epoll)
}
