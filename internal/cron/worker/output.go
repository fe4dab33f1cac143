package worker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-coord/coord/internal/cron/job"
	"github.com/go-coord/coord/internal/cron/record"
	"github.com/go-coord/coord/internal/hold"
	"github.com/go-coord/coord/internal/hold/guard"
)

// readFirst is how much is read at once, and readMost, where there is more: most jobs write next to nothing.
const readFirst, readMost = 2 << 10, 32 << 10

// drainFor is how long the rest of a run's output is read when something of it lives on and keeps the pipe open.
const drainFor = 100 * time.Millisecond

// output is what a run writes: a pipe, of which the end is kept, and a file that has all of it where the job asks for one.
type output struct {
	r, w *os.File
	path string // of the pipe, for the guard
	keep int
	done chan struct{} // closed when the pipe is read to its end

	ring  []byte
	bytes int64
	file  *rotated // nil: none
	fault error    // of the file: told once
}

func newOutput(spec *job.Job, name string) (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	o := &output{r: r, w: w, keep: spec.Keep(), done: make(chan struct{})}
	if o.path, err = guard.Path(w); err != nil {
		o.abandon()
		return nil, err
	}
	if path, size, count := spec.OutputFile(); path != "" {
		if o.file, err = openRotated(path, size, count); err != nil {
			o.abandon()
			return nil, fmt.Errorf("output file %s: %w", hold.Escape(path), err)
		}
	}
	go o.read()
	return o, nil
}

func (o *output) abandon() { _ = errors.Join(o.r.Close(), o.w.Close()) }

// read takes in all that is written, however much: a run never waits for it.
func (o *output) read() {
	defer close(o.done)
	buf := make([]byte, readFirst)
	for {
		n, err := o.r.Read(buf)
		o.take(buf[:n])
		if err != nil {
			return
		}
		if n == len(buf) && n < readMost {
			buf = make([]byte, readMost)
		}
	}
}

func (o *output) take(p []byte) {
	if len(p) == 0 {
		return
	}
	o.bytes += int64(len(p))
	if o.file != nil && o.fault == nil {
		_, o.fault = o.file.Write(p)
	}
	if len(p) > o.keep {
		p = p[len(p)-o.keep:]
	}
	o.ring = append(o.ring, p...)
	// Cut when it has grown to twice what is kept, so that a byte is moved once on average.
	if len(o.ring) > 2*o.keep {
		o.ring = append(o.ring[:0], o.ring[len(o.ring)-o.keep:]...)
	}
}

// end closes the pipe and gives what is kept. clean: nothing of the run is left that could write.
func (o *output) end(clean bool) record.Output {
	_ = o.w.Close()
	if !clean {
		_ = o.r.SetReadDeadline(time.Now().Add(drainFor))
	}
	<-o.done
	tail := o.ring
	if len(tail) > o.keep {
		tail = tail[len(tail)-o.keep:]
	}
	return record.Output{Tail: text(tail), Bytes: o.bytes, Truncated: o.bytes > int64(len(tail))}
}

// text makes any bytes valid text: the tail begins with a whole character, and what is none is U+FFFD.
func text(tail []byte) string {
	for n := 0; n < utf8.UTFMax-1 && len(tail) > 0 && !utf8.RuneStart(tail[0]); n++ {
		tail = tail[1:]
	}
	return strings.ToValidUTF8(string(tail), "\uFFFD")
}

func (o *output) close() {
	_ = o.w.Close()
	_ = o.r.Close()
	<-o.done
	if o.file != nil {
		_ = o.file.Close()
	}
}

// rotated is a file that is renamed when it has grown: name.1, and so on to name.<count>, which is the oldest.
type rotated struct {
	path  string
	size  int64
	count int
	f     *os.File
	at    int64
}

// openRotated opens a file for appending, and makes it. It follows no link.
func openRotated(path string, size int64, count int) (*rotated, error) {
	r := &rotated{path: path, size: size, count: count}
	return r, r.open()
}

func (r *rotated) open() error {
	f, err := os.OpenFile(filepath.Clean(r.path), os.O_WRONLY|os.O_APPEND|os.O_CREATE|noFollow, 0o640)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r.f, r.at = f, fi.Size()
	return nil
}

// Write is io.Writer's.
func (r *rotated) Write(p []byte) (written int, err error) {
	for written < len(p) {
		part := r.fitting(p[written:])
		if part == 0 {
			if err := r.rotate(); err != nil {
				return written, err
			}
			continue
		}
		n, err := r.f.Write(p[written : written+part])
		r.at += int64(n)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// fitting is how much of p has its place in this file: all of it, or the lines that it has room for. A line that is longer than a file
// is torn. 0: what comes next goes to the next file.
func (r *rotated) fitting(p []byte) int {
	room := max(r.size-r.at, 0)
	if int64(len(p)) <= room {
		return len(p)
	}
	if lines := bytes.LastIndexByte(p[:room], '\n') + 1; lines > 0 || r.at > 0 {
		return lines
	}
	return int(room)
}

func (r *rotated) rotate() error {
	if err := r.f.Close(); err != nil {
		return err
	}
	for i := r.count; i > 0; i-- {
		from := r.path
		if i > 1 {
			from += "." + strconv.Itoa(i-1)
		}
		if err := os.Rename(from, r.path+"."+strconv.Itoa(i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return r.open()
}

// Close is io.Closer's.
func (r *rotated) Close() error { return r.f.Close() }

var _ io.WriteCloser = (*rotated)(nil)
