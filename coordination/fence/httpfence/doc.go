// Package httpfence carries fencing tokens over HTTP: a handler that refuses those that are too low, and a round trip that
// sends them.
//
//	caller                                             service
//	fence.WithToken(ctx, lease.Token)
//	Transport: "Fencing-Token: 33"  ─────────────────▶ New(next, Options{Key, Guard})
//	                                                     no token             428
//	                                                     not one whole number 400
//	                                                     below the highest    412, and which that is
//	Refused(response): *fence.ErrFenced  ◀───────────    else next, alone with the key
//
// # What is not guaranteed
//
//   - The answer to a write that is refused is certain; no answer says nothing: the write may be done, or come later.
//   - The guard keeps others out until next has returned. What next handed on, and what a service behind it does
//     later, is out of reach: pass the token on (the request's context has it, and Transport sends it), or check it in the
//     transaction that writes, by fence.SQL, with Options.Guard nil.
//   - Where several processes serve, each has a memory of its own: fence.Memory is then no guard.
//   - The key is the service's to say. A caller that could name it would find its way around.
//
// # Why 412
//
// The token is a condition in the request's header, and it does not hold: that is 412 Precondition Failed, and one that is
// missing 428 Precondition Required. 409 Conflict would say that the caller can mend it and try again; it cannot, another
// holder has come.
package httpfence
