package cli

import "github.com/spf13/pflag"

// Output are the flags that say how an answer is printed.
type Output struct {
	format string // table or json
	json   bool
}

// AddFlags declares -o and --json; usage is what to say of the former.
func (o *Output) AddFlags(flags *pflag.FlagSet, usage string) {
	flags.VarP(Choice(&o.format, "table", "json"), "output", "o", usage)
	flags.BoolVar(&o.json, "json", false, "the same as -o json")
}

// JSON reports whether an answer is for a program.
func (o *Output) JSON() bool { return o.json || o.format == "json" }
