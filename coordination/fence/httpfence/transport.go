package httpfence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/go-coord/coord/coordination/fence"
)

// ErrNoToken is returned for a request whose context carries no token: it was not sent.
var ErrNoToken = errors.New("httpfence: no token in the request's context")

// Transport sends each request with the token that its context carries; see fence.WithToken. A request without one is not
// sent: whoever forgot it would write unfenced. Use it in a client for fenced writes only; redirects get the
// token too.
type Transport struct {
	// Base sends the requests. Default http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, ok := fence.TokenFrom(r.Context())
	if !ok || token == 0 {
		if r.Body != nil {
			_ = r.Body.Close() // a round trip closes it, whatever comes
		}
		return nil, ErrNoToken
	}
	r = r.Clone(r.Context())
	r.Header.Set(Header, strconv.FormatUint(token, 10))
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(r)
}

// refusalSize bounds what is read of an answer.
const refusalSize = 64 << 10

// Refused is the *fence.ErrFenced that an answer stands for, or nil where it stands for none: it may still be an error of another
// kind, so look at its status too. The answer's body can be read afterwards as before.
func Refused(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusPreconditionFailed || kind != mediaType {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, refusalSize))
	resp.Body = rest{io.MultiReader(bytes.NewReader(text), resp.Body), resp.Body}
	if err != nil {
		return fmt.Errorf("read refusal: %w", err)
	}
	var p problem
	if json.Unmarshal(text, &p) != nil || p.Type != Type {
		return nil
	}
	return &fence.ErrFenced{Key: p.Key, Have: p.Have, Seen: p.Seen}
}

// rest is a body of which the beginning was read already.
type rest struct {
	io.Reader
	io.Closer
}
