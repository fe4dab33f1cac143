package lazy

import "testing"

// Red when an expression is compiled before it is needed, or each time.
func TestRegexpIsCompiledOnceAndWhenNeeded(t *testing.T) {
	digits, wrong := Regexp(`^[0-9]+$`), Regexp(`(`) // which nobody has noticed yet
	if first := digits(); !first.MatchString("42") || digits() != first {
		t.Error("not one expression")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	wrong()
}
