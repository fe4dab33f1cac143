package worker

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/go-coord/coord/internal/hold/guard"
)

// The test binary is the guard, too. Tests do not run side by side: a sweep ends all children of a process.
func TestMain(m *testing.M) {
	if guard.IsRole(os.Args) {
		os.Exit(guard.Main())
	}
	goleak.VerifyTestMain(m)
}
