package cli

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// labels is a flag that is given once for each label.
type labels struct{ to *map[string]string }

// Labels makes a flag value for labels of the form KEY=VALUE. What keys and values may hold is for others to say.
func Labels(to *map[string]string) labels { return labels{to} }

func (l labels) Set(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok || key == "" {
		return errors.New("want " + l.Accepts())
	}
	if _, twice := (*l.to)[key]; twice {
		return errors.New("is given twice")
	}
	if *l.to == nil {
		*l.to = map[string]string{}
	}
	(*l.to)[key] = value
	return nil
}

func (l labels) String() string {
	if l.to == nil {
		return ""
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(*l.to)) {
		all = append(all, key+"="+(*l.to)[key])
	}
	return strings.Join(all, ",")
}

func (l labels) Type() string    { return "KEY=VALUE" }
func (l labels) Accepts() string { return "KEY=VALUE, such as rack=r1" }
