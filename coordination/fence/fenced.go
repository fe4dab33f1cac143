package fence

import (
	"errors"
	"fmt"
)

var (
	// ErrInvalid is returned for what no Locker grants: an empty key, the token 0, or one that is larger than what the
	// guard can store.
	ErrInvalid = errors.New("fence: invalid key or token")
	// ErrDamaged is returned when what a guard has stored is no token. Nothing is accepted until somebody has mended it.
	ErrDamaged = errors.New("fence: stored token is damaged")
)

// ErrFenced is returned, as a pointer, when a token is below the highest seen: another holder has come since, and its
// writes must not be touched. There is no point in trying again.
//
//	var fenced *fence.ErrFenced
//	if errors.As(err, &fenced) { ... }
//	if errors.Is(err, &fence.ErrFenced{}) { ... }
type ErrFenced struct {
	Key  string // what is protected
	Have uint64 // the token that was refused
	Seen uint64 // the highest that the guard has seen
}

func (e *ErrFenced) Error() string {
	return fmt.Sprintf("fence: %q: token %d is below %d, the highest seen", e.Key, e.Have, e.Seen)
}

// Is reports whether target is an *ErrFenced that is the same where it says anything: a field that is zero matches all.
func (e *ErrFenced) Is(target error) bool {
	t, ok := target.(*ErrFenced)
	return ok && (t.Key == "" || t.Key == e.Key) && (t.Have == 0 || t.Have == e.Have) && (t.Seen == 0 || t.Seen == e.Seen)
}

// Check is the rule: an *[ErrFenced] for a token that is below seen, the highest that was seen of key, and nil for any other.
// 0 means that none was seen. It is ErrInvalid for an empty key and the token 0.
//
// It is for guards: a Check beside the data, with anything between it and the write, protects nothing.
func Check(key string, token, seen uint64) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: no key", ErrInvalid)
	case token == 0:
		return fmt.Errorf("%w: no token for %q", ErrInvalid, key)
	case token < seen:
		return &ErrFenced{Key: key, Have: token, Seen: seen}
	}
	return nil
}
