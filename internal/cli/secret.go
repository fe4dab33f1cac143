package cli

import "log/slog"

// Secret is a text that prints as something else, so that no careless line of a log gives it away. JSON has it:
// the settings go to the guard.
type Secret string

const hidden = "[hidden]"

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
