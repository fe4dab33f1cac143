package fence

import "context"

// tokenKey is where a context carries a token.
type tokenKey struct{}

// WithToken gives a context that carries the token of a lease, for what finds it by [TokenFrom]: the round trip of
// package httpfence, and its handler for what runs behind it.
func WithToken(ctx context.Context, token uint64) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

// TokenFrom is the token that a context carries; false where it carries none.
func TokenFrom(ctx context.Context) (token uint64, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(uint64)
	return token, ok
}
