package fence

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/coordination/fence"
	"github.com/go-coord/coord/coordination/fence/etcdfence"
	"github.com/go-coord/coord/coordination/fence/httpfence"
	"github.com/go-coord/coord/internal/etcd/etcdtest"
)

// targets are all kinds of data, with their guards or without.
var targets = map[string]func(t *testing.T, guarded bool) target{
	"Memory":     newMemory,
	"File":       newFile,
	"HTTP":       newHTTP,
	"Etcd":       newEtcd,
	"SQLite":     newSQLite,
	"PostgreSQL": newPostgreSQL,
}

// diary is data in memory that remembers all that it ever was.
type diary struct {
	mu   sync.Mutex
	book map[string][]uint64
}

func (d *diary) put(key string, token uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.book == nil {
		d.book = map[string][]uint64{}
	}
	d.book[key] = append(d.book[key], token)
}

func (d *diary) landed(_ context.Context, key string) ([]uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.book[key], nil
}

// guard is what Memory has, or nothing.
type guard interface {
	Do(ctx context.Context, key string, token uint64, write func(context.Context) error) error
}

// none accepts everything.
type none struct{}

func (none) Do(ctx context.Context, _ string, _ uint64, write func(context.Context) error) error {
	return write(ctx)
}

func memory(guarded bool) guard {
	if guarded {
		return &fence.Memory{}
	}
	return none{}
}

// inMemory is a diary behind a guard.
type inMemory struct {
	diary
	guard guard
}

func newMemory(_ *testing.T, guarded bool) target { return &inMemory{guard: memory(guarded)} }

func (m *inMemory) write(ctx context.Context, key string, token uint64, at pause) error {
	at(before)
	return m.guard.Do(ctx, key, token, func(context.Context) error {
		at(inside)
		m.put(key, token)
		at(after)
		return nil
	})
}

// inFiles is a file for each key, to which each write adds a line.
type inFiles struct {
	dir     string
	guarded bool
}

func newFile(t *testing.T, guarded bool) target { return &inFiles{quickDir(t), guarded} }

// quickDir is a folder in memory, where there is such a place: a thousand runs wait for the disk four thousand times.
func quickDir(t *testing.T) string {
	t.Helper()
	parent := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		parent = "/dev/shm"
	}
	dir, err := os.MkdirTemp(parent, "fence")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (f *inFiles) write(ctx context.Context, key string, token uint64, at pause) error {
	at(before)
	data := func(context.Context) error {
		at(inside)
		file, err := os.OpenFile(filepath.Join(f.dir, key), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = fmt.Fprintln(file, token)
		at(after)
		return err
	}
	if !f.guarded {
		return data(ctx)
	}
	guard, err := fence.NewFile(filepath.Join(f.dir, key+".token")) // another process's would be another one
	if err != nil {
		return err
	}
	return guard.Do(ctx, token, data)
}

func (f *inFiles) landed(_ context.Context, key string) (all []uint64, err error) {
	file, err := os.Open(filepath.Join(f.dir, key))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for {
		var token uint64
		if _, err := fmt.Fscanln(file, &token); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, token)
	}
}

// overHTTP is a diary that a service keeps.
type overHTTP struct {
	inMemory
	client *http.Client
	url    string
	pauses sync.Map // of the requests under way, by number
	mu     sync.Mutex
	last   int
}

func newHTTP(t *testing.T, guarded bool) target {
	s := &overHTTP{}
	handler, err := httpfence.New(http.HandlerFunc(s.serve), httpfence.Options{
		Guard: memory(guarded), Key: func(r *http.Request) string { return r.URL.Path },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	s.client, s.url = &http.Client{Transport: httpfence.Transport{Base: server.Client().Transport}}, server.URL+"/"
	return s
}

func (s *overHTTP) serve(_ http.ResponseWriter, r *http.Request) {
	found, _ := s.pauses.Load(r.Header.Get("Request"))
	at := found.(pause)
	token, _ := fence.TokenFrom(r.Context())
	at(inside)
	s.put(r.URL.Path[1:], token)
	at(after)
}

func (s *overHTTP) write(ctx context.Context, key string, token uint64, at pause) error {
	at(before)
	s.mu.Lock()
	s.last++
	number := strconv.Itoa(s.last)
	s.mu.Unlock()
	s.pauses.Store(number, at)
	req, err := http.NewRequestWithContext(fence.WithToken(ctx, token), http.MethodPost, s.url+key, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Request", number)
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := httpfence.Refused(resp); err != nil || resp.StatusCode == http.StatusOK {
		return err
	}
	return fmt.Errorf("answered %s", resp.Status)
}

// inEtcd is a key for each write, so that etcd itself says in which order they landed.
type inEtcd struct {
	client  *clientv3.Client
	prefix  string
	guarded bool
	mu      sync.Mutex
	last    int
}

func newEtcd(t *testing.T, guarded bool) target {
	return &inEtcd{client: etcdtest.Shared(t).Client(t), prefix: etcdtest.Prefix(t), guarded: guarded}
}

func (e *inEtcd) write(ctx context.Context, key string, token uint64, at pause) error {
	e.mu.Lock()
	e.last++
	put := clientv3.OpPut(fmt.Sprintf("%s%s/%d", e.prefix, key, e.last), strconv.FormatUint(token, 10))
	e.mu.Unlock()
	at(before)
	if !e.guarded {
		_, err := e.client.Do(ctx, put)
		return err
	}
	guard, err := etcdfence.New(e.prefix + key + ".token")
	if err != nil {
		return err
	}
	_, err = guard.Do(ctx, e.client, token, put)
	return err
}

func (e *inEtcd) landed(ctx context.Context, key string) (all []uint64, err error) {
	got, err := e.client.Get(ctx, e.prefix+key+"/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return nil, err
	}
	for _, kv := range got.Kvs {
		token, err := strconv.ParseUint(string(kv.Value), 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, token)
	}
	return all, nil
}
