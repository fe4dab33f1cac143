package hold_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-coord/coord/internal/hold"
)

func TestEachErrorHasItsExitCode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{hold.ErrUsage, 64},
		{hold.ErrUnreachable, 69},
		{hold.ErrNoGuard, 69},
		{hold.ErrLost, 70},
		{hold.ErrEvicted, 70},
		{hold.ErrUnprinted, 74},
		{hold.ErrNotAcquired, 75},
		{hold.ErrFenced, 76},
		{hold.ErrNotGone, 75},
		{hold.ErrNotEvicted, 1},
		{hold.ErrNo, 1},
		{hold.ErrPermission, 77},
		{hold.ErrNotExecutable, 126},
		{hold.ErrNotFound, 127},
		{context.Canceled, 75},
		{errors.New("nobody knows this one"), 69},
		{fmt.Errorf("acquire office: %w", hold.ErrNotAcquired), 75},
		{fmt.Errorf("%w: %w", hold.ErrNotAcquired, context.DeadlineExceeded), 75},
		{errors.Join(errors.New("beside the point"), hold.ErrPermission), 77},
		{fmt.Errorf("%w: %w", hold.ErrUnreachable, hold.ErrPermission), 77}, // it answered, and said no
	} {
		if got := hold.ExitCode(tt.err); got != tt.want {
			t.Errorf("ExitCode(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestPublicExitCodesDoNotChange(t *testing.T) {
	t.Parallel()
	got := []int{
		hold.CodeOK, hold.CodeNo, hold.CodeUsage, hold.CodeUnreachable, hold.CodeLost, hold.CodeHookFailed,
		hold.CodeNotAcquired, hold.CodeFenced, hold.CodePermission, hold.CodeNotExecutable, hold.CodeNotFound,
		hold.SignalCode(15), hold.CodeUnprinted,
	}
	want := []int{0, 1, 64, 69, 70, 71, 75, 76, 77, 126, 127, 143, 74}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("code %d of the list is %d, want %d", i, got[i], want[i])
		}
	}
}
