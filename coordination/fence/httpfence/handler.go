package httpfence

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/go-coord/coord/coordination/fence"
)

// Header is where a request has its token: one whole number above 0, in decimal digits.
const Header = "Fencing-Token"

// ErrInvalidOption is returned by New when an option is missing.
var ErrInvalidOption = errors.New("httpfence: invalid option")

// Guard lets one write of a key run at a time, and refuses tokens below the highest seen of that key with a
// *fence.ErrFenced. A *fence.Memory is one.
type Guard interface {
	Do(ctx context.Context, key string, token uint64, write func(context.Context) error) error
}

// Options configure a handler.
type Options struct {
	// Key says what a request writes to: tokens are compared within one key. It must not depend on what the caller may choose
	// freely. Required.
	Key func(*http.Request) string
	// Guard checks the token and keeps lower ones out until the handler behind has returned. nil: that handler checks by
	// itself, with the token that fence.TokenFrom finds in the request's context, and says so by Refuse.
	Guard Guard
}

// New puts a check before next: only requests with a token that is not too low get there, those of one key one at a time.
// Mount it where writes are served; reads that carry no token belong elsewhere.
func New(next http.Handler, o Options) (http.Handler, error) {
	if next == nil || o.Key == nil {
		return nil, ErrInvalidOption
	}
	return &handler{o, next}, nil
}

type handler struct {
	Options
	next http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, problem := tokenOf(r)
	if problem != nil {
		problem.write(w)
		return
	}
	served := false
	serve := func(ctx context.Context) error {
		served = true
		h.next.ServeHTTP(w, r.WithContext(fence.WithToken(ctx, token)))
		return nil
	}
	if h.Guard == nil {
		_ = serve(r.Context())
		return
	}
	if err := h.Guard.Do(r.Context(), h.Key(r), token, serve); err != nil && !served && !Refuse(w, err) {
		problemOf(http.StatusServiceUnavailable, "the token could not be checked").write(w)
	}
}

// tokenOf reads the header. A second one is refused: somebody on the way may have looked at the first.
func tokenOf(r *http.Request) (uint64, *problem) {
	values := r.Header.Values(Header)
	if len(values) == 0 {
		return 0, problemOf(http.StatusPreconditionRequired, "the header "+Header+" is missing")
	}
	token, err := strconv.ParseUint(values[0], 10, 64)
	if len(values) > 1 || err != nil || token == 0 || values[0] != strconv.FormatUint(token, 10) {
		return 0, problemOf(http.StatusBadRequest, "the header "+Header+" has to be one whole number above 0")
	}
	return token, nil
}
