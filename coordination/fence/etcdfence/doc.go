// Package etcdfence guards data in etcd: the highest token seen stands at a key, and a transaction that writes
// compares and puts it in the same step.
//
// # When to use it
//
// Where the lock is granted by the same etcd, and who writes holds a coord.Term, its Cmp is better: it fails as soon as
// the term is over, also while nobody else has come. A Guard is for tokens that come from elsewhere: another cluster, a
// lock of another kind, a caller of your service.
//
// # How
//
//	If    value(key) > "000...0"            what stands there is a token, as far as a compare can tell
//	      value(key) < "0...01207" + NUL    and not above ours: lower, or equal
//	Then  your operations, put key = "0...01207"
//	Else  get key
//
// Tokens are written as twenty digits, so that etcd, which compares bytes, compares numbers. A value that does not exist
// compares as false: the first write finds that out from Else and asks again, with a compare that the key is not there. So it
// takes one round trip, and two for the first write of a key.
//
// # What is not guaranteed
//
//   - What is written without the Guard's compares is not guarded.
//   - Who deletes the key takes the guard away: the next token begins it anew.
//   - A value put there by hand that is no token of ours is ErrDamaged where it compares as higher than the token. One
//     that compares as lower, as "0000000000000000005" does (a digit short), is replaced.
//   - A transaction without an answer may have been done, or may still be: that is etcd's, not the Guard's. Repeating it
//     under the same token is safe as far as the Guard is concerned.
package etcdfence
