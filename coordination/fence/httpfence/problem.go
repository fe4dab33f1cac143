package httpfence

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/go-coord/coord/coordination/fence"
)

// Type is the type of the problem (RFC 9457) that tells a refused token from any other 412.
const Type = "https://pkg.go.dev/github.com/go-coord/coord/coordination/fence#ErrFenced"

// problem is the body of an answer that is none of the handler behind.
//
//	{"type":"https://...#ErrFenced","title":"fenced","status":412,"key":"reports","have":33,"seen":34}
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Key    string `json:"key,omitempty"`
	Have   uint64 `json:"have,omitempty"`
	Seen   uint64 `json:"seen,omitempty"`
}

// mediaType is that of a problem.
const mediaType = "application/problem+json"

// problemOf is one that its status explains.
func problemOf(status int, title string) *problem {
	return &problem{Type: "about:blank", Title: title, Status: status}
}

func (p *problem) write(w http.ResponseWriter) {
	body, _ := json.Marshal(p) // of these types it cannot fail
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff") // the key may hold anything
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the caller may have gone
}

// Refuse answers with 412 where err wraps a *fence.ErrFenced, and reports whether it did. It is for handlers that check by
// themselves, before anything else was written.
func Refuse(w http.ResponseWriter, err error) bool {
	var fenced *fence.ErrFenced
	if !errors.As(err, &fenced) {
		return false
	}
	p := &problem{
		Type: Type, Title: "fenced", Status: http.StatusPreconditionFailed,
		Key: fenced.Key, Have: fenced.Have, Seen: fenced.Seen,
	}
	p.write(w)
	return true
}
