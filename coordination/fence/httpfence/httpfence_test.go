package httpfence

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-coord/coord/coordination/fence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBusy = errors.New("the guard has no answer")

// guardFunc is a Guard that is one function.
type guardFunc func(ctx context.Context, key string, token uint64, write func(context.Context) error) error

func (f guardFunc) Do(ctx context.Context, key string, token uint64, write func(context.Context) error) error {
	return f(ctx, key, token, write)
}

func byPath(r *http.Request) string { return r.URL.Path }

// serve serves next behind a handler and gives a client that fences.
func serve(t *testing.T, o Options, next http.HandlerFunc) (*http.Client, string) {
	t.Helper()
	h, err := New(next, o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return &http.Client{Transport: Transport{Base: server.Client().Transport}}, server.URL
}

// send posts under a token and gives the answer, whose body was read.
func send(t *testing.T, client *http.Client, url string, token uint64) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(fence.WithToken(t.Context(), token), http.MethodPost, url, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	refused := Refused(resp)
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if wanted := resp.StatusCode == http.StatusPreconditionFailed; wanted != errors.Is(refused, &fence.ErrFenced{}) {
		t.Errorf("%s, and Refused says %v", resp.Status, refused)
	}
	if req.Header.Get(Header) != "" {
		t.Error("the caller's request was changed")
	}
	return resp, string(body)
}

func TestALowerTokenIsAnsweredWith412(t *testing.T) {
	t.Parallel()
	client, url := serve(t, Options{Key: byPath, Guard: &fence.Memory{}}, func(w http.ResponseWriter, r *http.Request) {
		token, ok := fence.TokenFrom(r.Context())
		_ = json.NewEncoder(w).Encode([]any{token, ok})
	})
	for _, row := range []struct {
		path  string
		token uint64
		code  int
		body  string
	}{
		{"/a", 34, 200, "[34,true]\n"},
		{"/a", 34, 200, "[34,true]\n"},
		{"/a", 33, 412, `{"type":"` + Type + `","title":"fenced","status":412,"key":"/a","have":33,"seen":34}` + "\n"},
		{"/b", 33, 200, "[33,true]\n"},
		{"/a", 1<<64 - 1, 200, "[18446744073709551615,true]\n"},
		{"/a", 34, 412, `{"type":"` + Type + `","title":"fenced","status":412,"key":"/a","have":34,"seen":18446744073709551615}` + "\n"},
	} {
		resp, body := send(t, client, url+row.path, row.token)
		if resp.StatusCode != row.code || body != row.body {
			t.Errorf("%s under %d: %d %s, want %d %s", row.path, row.token, resp.StatusCode, body, row.code, row.body)
		}
		if row.code == 412 && resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%v", resp.Header)
		}
	}
}

func TestWhatIsNoTokenNeverReachesTheGuard(t *testing.T) {
	t.Parallel()
	never := func(http.ResponseWriter, *http.Request) { t.Error("it was served") }
	guard := guardFunc(func(context.Context, string, uint64, func(context.Context) error) error {
		t.Error("the guard was asked")
		return nil
	})
	h, err := New(http.HandlerFunc(never), Options{Key: byPath, Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		values []string
		code   int
	}{
		{nil, 428}, {[]string{""}, 400}, {[]string{"0"}, 400}, {[]string{"-1"}, 400}, {[]string{"+1"}, 400}, {[]string{"01"}, 400},
		{[]string{" 1"}, 400}, {[]string{"1.0"}, 400}, {[]string{"1e3"}, 400}, {[]string{"0x1"}, 400}, {[]string{"1_0"}, 400},
		{[]string{"18446744073709551616"}, 400}, {[]string{"1, 2"}, 400}, {[]string{"1", "2"}, 400}, {[]string{"1", "1"}, 400}, {[]string{"x"}, 400},
	} {
		r := httptest.NewRequest(http.MethodPost, "/a", nil)
		r.Header[Header] = row.values
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != row.code || !strings.Contains(w.Body.String(), Header) {
			t.Errorf("%q: %d %s, want %d", row.values, w.Code, w.Body, row.code)
		}
	}
}

func TestTheHandlerBehindMayCheckByItself(t *testing.T) {
	t.Parallel()
	client, url := serve(t, Options{Key: byPath}, func(w http.ResponseWriter, r *http.Request) {
		token, _ := fence.TokenFrom(r.Context())
		if err := fence.Check("k", token, 34); !Refuse(w, err) {
			w.WriteHeader(http.StatusNoContent)
		}
	})
	if resp, _ := send(t, client, url, 34); resp.StatusCode != http.StatusNoContent {
		t.Error(resp.Status)
	}
	if resp, _ := send(t, client, url, 33); resp.StatusCode != http.StatusPreconditionFailed {
		t.Error(resp.Status)
	}
}

func TestAGuardWithoutAnAnswerIsA503(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		serves bool
		code   int
	}{
		"before it was served":     {false, http.StatusServiceUnavailable},
		"after, nothing is undone": {true, http.StatusOK},
	} {
		guard := guardFunc(func(ctx context.Context, _ string, _ uint64, write func(context.Context) error) error {
			if row.serves {
				_ = write(ctx)
			}
			return errBusy
		})
		client, url := serve(t, Options{Key: byPath, Guard: guard}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") })
		if resp, body := send(t, client, url, 34); resp.StatusCode != row.code || row.serves != (body == "done") {
			t.Errorf("%s: %s %s", name, resp.Status, body)
		}
	}
}

func TestARequestWithoutATokenIsNotSent(t *testing.T) {
	t.Parallel()
	client, url := serve(t, Options{Key: byPath}, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	closed := &body{Reader: strings.NewReader("x")}
	for _, ctx := range []context.Context{t.Context(), fence.WithToken(t.Context(), 0)} {
		for _, with := range []io.ReadCloser{nil, closed} {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Body = with
			if with == nil {
				req.Body = nil
			}
			if _, err := client.Do(req); !errors.Is(err, ErrNoToken) {
				t.Errorf("%v", err)
			}
		}
	}
	if !closed.closed {
		t.Error("the body was left open")
	}
}

// body is one that fails when it says so.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBusy }

func TestOnlyARefusalIsTakenForOne(t *testing.T) {
	t.Parallel()
	ours := `{"type":"` + Type + `","key":"k","have":33,"seen":34}`
	for name, row := range map[string]struct {
		code        int
		kind, text  string
		want        error // nil: none
		fails, open bool
	}{
		"one of ours":           {412, "application/problem+json; charset=utf-8", ours, &fence.ErrFenced{Key: "k", Have: 33, Seen: 34}, false, false},
		"another 412":           {412, "application/problem+json", `{"type":"about:blank","have":33,"seen":34}`, nil, false, false},
		"an etag did not match": {412, "text/html", ours, nil, false, false},
		"another code":          {409, "application/problem+json", ours, nil, false, false},
		"cut short":             {412, "application/problem+json", ours[:20], nil, false, false},
		"broken off":            {412, "application/problem+json", "", errBusy, true, false},
	} {
		from := &body{Reader: strings.NewReader(row.text)}
		if row.fails {
			from.Reader = broken{}
		}
		resp := &http.Response{StatusCode: row.code, Header: http.Header{"Content-Type": {row.kind}}, Body: from}
		if err := Refused(resp); !errors.Is(err, row.want) || row.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
		if text, err := io.ReadAll(resp.Body); !row.fails && (string(text) != row.text || err != nil) {
			t.Errorf("%s: the body is %q now, %v", name, text, err)
		}
		if err := resp.Body.Close(); err != nil || !from.closed {
			t.Errorf("%s: the body stays open, %v", name, err)
		}
	}
}

func TestTheDefaultTransport(t *testing.T) {
	t.Parallel()
	h, err := New(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), Options{Key: byPath, Guard: &fence.Memory{}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	if resp, _ := send(t, &http.Client{Transport: Transport{}}, server.URL, 1); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

func TestAnOptionThatIsMissing(t *testing.T) {
	t.Parallel()
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	if _, err := New(nil, Options{Key: byPath}); !errors.Is(err, ErrInvalidOption) {
		t.Error(err)
	}
	if _, err := New(next, Options{}); !errors.Is(err, ErrInvalidOption) {
		t.Error(err)
	}
	if Refuse(httptest.NewRecorder(), nil) {
		t.Error("nothing was refused")
	}
}
