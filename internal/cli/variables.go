package cli

import "github.com/spf13/pflag"

// Variables are the environment variables that stand in for a flag; the first that is set counts.
func Variables(f *pflag.Flag) []string { return f.Annotations[envNote] }

// Words are the values that a flag accepts, where they are a few words; else nil.
func Words(f *pflag.Flag) []string {
	if c, ok := f.Value.(choice); ok {
		return c.words
	}
	return nil
}
