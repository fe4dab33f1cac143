package fence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// File guards whatever is written while it is held, files above all, and stores the highest token in a file beside them:
// one file for each key. Processes exclude each other by flock(2) on path.lock.
//
// The file holds one line, {"token":1207}. It is replaced as a whole: a new one is written beside it, synced, renamed over
// it, and the folder is synced, before anything is written under the new token. So a crash at any moment leaves the old token
// or the new one, and never less than a writer began with. A file that holds anything else is ErrDamaged; one that is
// not there has seen nothing. What is no regular file, a link too, is refused.
//
// What is not guaranteed: the lock is as good as the file system's. Local ones are; NFS passes the lock on to its server, and
// gives it to the next one when a client was cut off for long. Who deletes path or path.lock takes the guard away.
// Systems without flock(2) have errors.ErrUnsupported.
type File struct {
	path string
	disk disk
}

const (
	lockSuffix = ".lock" // never deleted: who waits for it has it open
	newSuffix  = ".new"  // what a crash leaves of it is replaced the next time

	// tokenSize is more than any token takes.
	tokenSize = 64

	// A lock that is taken is tried again after a pause, which doubles from the first to the last.
	pauseFirst = time.Millisecond
	pauseLast  = 50 * time.Millisecond
)

// NewFile makes a guard that stores its token at path. Nothing is touched yet; the folder has to be there.
func NewFile(path string) (*File, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: no path", ErrInvalid)
	}
	return &File{path: filepath.Clean(path), disk: osDisk{}}, nil
}

// Do takes the lock, calls write unless token is below the highest seen, and gives the lock up when write has returned.
// ctx bounds the wait for the lock, and is what write gets. Nothing that write started may go on writing when it has
// returned; for processes see [Taken.Lock].
func (f *File) Do(ctx context.Context, token uint64, write func(context.Context) error) (err error) {
	taken, err := f.Take(ctx, token)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, taken.Close()) }()
	return write(ctx)
}

// Taken is a file guard whose lock is held and which has accepted a token.
type Taken struct{ lock *os.File }

// Lock is the file that carries the lock. A process that inherits it keeps the lock, also when this one is killed, until
// it has closed it or ended: hand it to what writes. Nobody may call flock(2) on it.
func (t *Taken) Lock() *os.File { return t.lock }

// Close gives up this process's part of the lock. The next one is let in when nobody has it open any more.
func (t *Taken) Close() error { return t.lock.Close() }

// Take waits for the lock, until ctx ends, and stores the token unless it is lower than the one stored: then it is
// an *[ErrFenced]. The lock is tried once, whatever has become of ctx. Whoever calls Take closes what it gives.
func (f *File) Take(ctx context.Context, token uint64) (*Taken, error) {
	if err := Check(f.path, token, 0); err != nil {
		return nil, err
	}
	lock, err := f.lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", f.path+lockSuffix, err)
	}
	if err := f.see(token); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &Taken{lock}, nil
}

// Seen is the highest token seen; 0 for none. It takes no lock, and by the time it returns there may be a higher one.
func (f *File) Seen() (uint64, error) {
	text, err := f.disk.read(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read token: %w", err)
	}
	return f.decode(text)
}

// see stores a token. The lock is held.
func (f *File) see(token uint64) error {
	seen, err := f.Seen()
	if err != nil {
		return err
	}
	if err := Check(f.path, token, seen); err != nil {
		return err
	}
	if token > seen {
		err = f.replace(token)
	}
	// Also where the token was there: who put it may have died right before this.
	if err == nil {
		err = f.disk.syncDir(filepath.Dir(f.path))
	}
	if err != nil {
		return fmt.Errorf("store token: %w", err)
	}
	return nil
}

// replace puts a new file in the place of the old one. What the new one holds is on the disk before its name is.
func (f *File) replace(token uint64) error {
	file, err := f.disk.create(f.path + newSuffix)
	if err != nil {
		return err
	}
	if _, err = file.Write(encode(token)); err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return f.disk.rename(f.path+newSuffix, f.path)
}

// lock waits for the lock.
func (f *File) lock(ctx context.Context) (*os.File, error) {
	for pause := pauseFirst; ; pause = min(2*pause, pauseLast) {
		lock, err := f.disk.tryLock(f.path + lockSuffix)
		if lock != nil || err != nil {
			return lock, err
		}
		retry := time.NewTimer(pause)
		select {
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// stored is what the file holds.
type stored struct {
	Token uint64 `json:"token"`
}

func encode(token uint64) []byte {
	text, _ := json.Marshal(stored{token}) // of this type it cannot fail
	return append(text, '\n')
}

// decode accepts what encode writes, to the byte, and nothing else.
func (f *File) decode(text []byte) (uint64, error) {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil || s.Token == 0 || string(text) != string(encode(s.Token)) {
		return 0, fmt.Errorf("%w: %s holds %.40q, want %.40q", ErrDamaged, f.path, text, `{"token":1207}`+"\n")
	}
	return s.Token, nil
}
