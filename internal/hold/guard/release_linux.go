package guard

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// releaseWithin bounds one execution of the release program.
const releaseWithin = 10 * time.Second

// execute runs the release program beside the loop and says whether it exited with 0.
//
// The program is executed by the descriptor that the wrapper handed over: whatever was upgraded or removed on
// disk since, it is the program that the wrapper knew. Its argv is "holdrelease", and "close" where only the
// open record is to be closed; the testament is its standard input, descriptor 3 holds the sealed settings.
func (k *kernel) execute(testament []byte, closing bool, answer func(ok bool)) {
	onOwnThread(func() {
		// Before the fork, so that nobody takes the child for an orphan of a run.
		k.family.ignore(unix.Gettid())
		answer(k.executeOnce(testament, closing) == nil)
	})
}

func (k *kernel) executeOnce(testament []byte, closing bool) error {
	stdin, err := sealed("testament", testament)
	if err != nil {
		return err
	}
	defer stdin.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	// A description of its own, so that each execution reads from the start.
	settings, err := os.Open("/proc/self/fd/" + strconv.Itoa(int(k.settings.Fd())))
	if err != nil {
		return err
	}
	defer settings.Close()

	argv := []string{ReleaseName}
	if closing {
		argv = append(argv, ReleaseClose)
	}
	// The program's descriptor lies above all of Files: one below would be overwritten before exec.
	path := "/proc/self/fd/" + strconv.Itoa(int(k.program.Fd()))
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{stdin.Fd(), null.Fd(), k.stdio[2].Fd(), settings.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return err
	}
	return await(pid)
}

// await waits for the release program, kills it when it takes too long, and reaps it: nobody else does.
func await(pid int) error {
	late := time.AfterFunc(releaseWithin, func() { _ = unix.Kill(pid, unix.SIGKILL) })
	var si unix.Siginfo
	// It stays a zombie until the timer is off, so the timer never meets another process's pid.
	err := ignoreEINTR(func() error { return unix.Waitid(unix.P_PID, pid, &si, unix.WEXITED|unix.WNOWAIT, nil) })
	late.Stop()
	if err != nil {
		return err
	}
	var status unix.WaitStatus
	err = ignoreEINTR(func() error { _, err := unix.Wait4(pid, &status, 0, nil); return err })
	if err == nil && status != 0 {
		err = syscall.ECHILD
	}
	return err
}

// sealed puts data into memory that has a descriptor and no name, and that nobody can change any more.
func sealed(name string, data []byte) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), name)
	// Written at offset 0 without moving it: the reader starts there.
	if _, err := file.WriteAt(data, 0); err != nil {
		_ = file.Close()
		return nil, err
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		_ = file.Close()
		return nil, os.NewSyscallError("fcntl", err)
	}
	return file, nil
}
