package guard

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/go-coord/coord/internal/hold"
)

// now reads the clock that runs through suspend.
func now() hold.Instant {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return hold.Instant(ts.Nano())
}

// alarm rings at an instant of that clock: a timer of the kernel's, so that a suspend counts, and a
// deadline that passed meanwhile rings at once.
type alarm struct {
	rang chan struct{} // one value may stand for many
	file *os.File
	conn func(func(fd uintptr)) error
	at   hold.Instant
	done chan struct{}
}

func newAlarm(func() hold.Instant) (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "alarm")
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	a := &alarm{rang: make(chan struct{}, 1), file: file, conn: raw.Control, done: make(chan struct{})}
	go a.listen()
	return a, nil
}

// set makes the alarm ring at an instant, and no more at the one set before; 0 is never.
func (a *alarm) set(at hold.Instant) {
	// An instant that has come rings again: what is due may have been put off by its own round.
	if at == a.at && at > now() {
		return
	}
	a.at = at
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}
	_ = a.conn(func(fd uintptr) { _ = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil) })
}

// listen passes each ring on until the alarm is closed.
func (a *alarm) listen() {
	defer close(a.done)
	buf := make([]byte, 8)
	for {
		if _, err := a.file.Read(buf); err != nil {
			return
		}
		select {
		case a.rang <- struct{}{}:
		default:
		}
	}
}

func (a *alarm) close() {
	_ = a.file.Close()
	<-a.done
}
