package supervise

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if !playRole() {
		goleak.VerifyTestMain(m)
	}
}
