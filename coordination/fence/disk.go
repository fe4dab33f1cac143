package fence

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// disk is what a File needs of a file system. Tests put one in its place that loses what was not synced.
type disk interface {
	// read gives what a regular file holds, or as much of it as shows that it is too long.
	read(path string) ([]byte, error)
	// tryLock locks a file, which it makes where there is none. nil: somebody else has the lock.
	tryLock(path string) (*os.File, error)
	// create makes a new file, in the place of one that is there.
	create(path string) (newFile, error)
	rename(from, to string) error
	syncDir(path string) error
}

// newFile is a file that is being written.
type newFile interface {
	io.WriteCloser
	Sync() error
}

// osDisk is the file system.
type osDisk struct{}

// ErrIrregular is returned when there is a link, a folder, a pipe or a device where a [File] keeps its token or its lock.
// None was made here, and none is touched.
var ErrIrregular = errors.New("not a regular file")

func (osDisk) read(path string) ([]byte, error) {
	file, err := openRegular(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, tokenSize))
}

// tryLock opens the file anew at each try: who had it may have put another one in its place. It is open for writing because
// NFS wants that, and for nobody else, because whoever may open it may lock it.
func (osDisk) tryLock(path string) (*os.File, error) {
	file, err := openRegular(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	locked, err := flock(file)
	if err == nil && locked {
		// A lock on a file that has lost its name excludes nobody.
		if locked, err = named(file, path); locked {
			return file, nil
		}
	}
	return nil, errors.Join(err, file.Close())
}

func (osDisk) create(path string) (newFile, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	file, err := openRegular(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// openRegular opens a regular file, and nothing else; it never waits for one.
func openRegular(path string, flags int, mode fs.FileMode) (*os.File, error) {
	// Before it is opened: a device may do something when it is.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrIrregular}
	}
	return os.OpenFile(path, flags|carefully, mode)
}

// named reports whether path is the name of file still.
func named(file *os.File, path string) (bool, error) {
	open, err := file.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(open, now), err
}
