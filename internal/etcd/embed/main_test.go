package embed

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets this test binary be the member process, as conch-dev is its own.
func TestMain(m *testing.M) {
	if code, ok := Role(os.Args); ok {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}
