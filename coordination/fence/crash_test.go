package fence

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"testing"
)

var errPower = errors.New("the power is gone")

// inode is a file of a model: what was written, and what of that is on the disk for sure.
type inode struct{ text, synced string }

// model is a folder that knows what a crash may take. What the kernel has in memory is lost with the power, or was
// written in time: both have to be survived.
type model struct {
	names, synced map[string]*inode
	left          int  // operations until one fails; below 0: none does
	once          bool // only that one, as on a disk that is full; else all after it, as when the power is gone
}

func newModel() *model {
	return &model{names: map[string]*inode{}, synced: map[string]*inode{}, left: -1}
}

// step is one operation; false: it fails.
func (m *model) step() bool {
	if m.left == 0 {
		if m.once {
			m.left = -1
		}
		return false
	}
	m.left--
	return true
}

func (m *model) read(path string) ([]byte, error) {
	switch file := m.names[path]; {
	case !m.step():
		return nil, errPower
	case file == nil:
		return nil, fs.ErrNotExist
	default:
		return []byte(file.text), nil
	}
}

func (m *model) tryLock(string) (*os.File, error) {
	if !m.step() {
		return nil, errPower
	}
	return os.Open(os.DevNull)
}

func (m *model) create(path string) (newFile, error) {
	if !m.step() {
		return nil, errPower
	}
	m.names[path] = &inode{}
	return &modelFile{m, m.names[path]}, nil
}

func (m *model) rename(from, to string) error {
	if !m.step() {
		return errPower
	}
	m.names[to] = m.names[from]
	delete(m.names, from)
	return nil
}

func (m *model) syncDir(string) error {
	if !m.step() {
		return errPower
	}
	m.synced = maps.Clone(m.names)
	return nil
}

type modelFile struct {
	m    *model
	file *inode
}

func (f *modelFile) Write(text []byte) (int, error) {
	if !f.m.step() {
		f.file.text += string(text[:len(text)/2])
		return len(text) / 2, errPower
	}
	f.file.text += string(text)
	return len(text), nil
}

func (f *modelFile) Sync() error {
	if !f.m.step() {
		return errPower
	}
	f.file.synced = f.file.text
	return nil
}

func (f *modelFile) Close() error {
	if !f.m.step() {
		return errPower
	}
	return nil
}

// after are the disks that may be found when the power is back: names as they were synced or as they were last, each with
// the contents that were synced, or all, or half of what was written since.
func (m *model) after() (disks []*model) {
	for _, names := range []map[string]*inode{m.synced, m.names} {
		for _, kept := range []func(*inode) string{
			func(f *inode) string { return f.synced },
			func(f *inode) string { return f.text },
			func(f *inode) string { return f.text[:max(len(f.synced), len(f.text)/2)] },
		} {
			disk := newModel()
			for name, file := range names {
				text := kept(file)
				disk.names[name] = &inode{text, text}
			}
			disk.synced = maps.Clone(disk.names)
			disks = append(disks, disk)
		}
	}
	return disks
}

// under is a guard on a model. wrote says whether a write began.
func under(m *model, token uint64) (wrote bool, err error) {
	f := &File{path: "token", disk: m}
	err = f.Do(context.Background(), token, func(context.Context) error { wrote = true; return nil })
	return wrote, err
}

// Whenever the power goes, what is found is the old token or the new one, and the new one where a write had begun.
func TestACrashAtAnyMoment(t *testing.T) {
	t.Parallel()
	for _, old := range []uint64{0, 33} {
		crashes := 0
		for at := 0; ; at++ {
			m := newModel()
			if old != 0 {
				if _, err := under(m, old); err != nil {
					t.Fatal(err)
				}
			}
			m.left = at
			wrote, err := under(m, 34)
			for i, disk := range m.after() {
				found, damaged := (&File{path: "token", disk: disk}).Seen()
				if damaged != nil || found != old && found != 34 || wrote && found != 34 {
					t.Errorf("power gone after %d operations, disk %d: found %d, %v; a write began: %v", at, i, found, damaged, wrote)
				}
			}
			if err == nil {
				break
			}
			crashes++
			if !errors.Is(err, errPower) || wrote {
				t.Fatalf("after %d operations: %v, a write began: %v", at, err, wrote)
			}
		}
		if crashes < 7 {
			t.Errorf("%d moments of a crash were tried", crashes)
		}
	}
}

// A process dies anywhere, and the next one begins with the same token; then the power goes.
func TestAProcessDiesAndThenThePowerGoes(t *testing.T) {
	t.Parallel()
	for at := 0; ; at++ {
		m := newModel()
		m.left = at
		_, died := under(m, 34)
		m.left = -1
		if wrote, err := under(m, 34); !wrote || err != nil {
			t.Fatalf("died after %d operations: then %v", at, err)
		}
		for i, disk := range m.after() {
			if found, err := (&File{path: "token", disk: disk}).Seen(); found != 34 || err != nil {
				t.Errorf("died after %d operations, disk %d: found %d, %v though a write had begun", at, i, found, err)
			}
		}
		if died == nil {
			return
		}
	}
}

// One operation fails, as on a disk that is full, and the next ones work: nothing is written, and nothing is damaged.
func TestAnOperationThatFails(t *testing.T) {
	t.Parallel()
	for at := 0; ; at++ {
		m := newModel()
		if _, err := under(m, 33); err != nil {
			t.Fatal(err)
		}
		m.left, m.once = at, true
		wrote, err := under(m, 34)
		if err == nil {
			return
		}
		if m.left = -1; wrote || !errors.Is(err, errPower) {
			t.Errorf("operation %d fails: a write began: %v, %v", at, wrote, err)
		}
		if seen, err := (&File{path: "token", disk: m}).Seen(); seen != 33 && seen != 34 || err != nil {
			t.Errorf("operation %d fails: then %d was seen, %v", at, seen, err)
		}
		if wrote, err := under(m, 34); !wrote || err != nil {
			t.Errorf("operation %d fails: the next attempt: %v, %v", at, wrote, err)
		}
	}
}
