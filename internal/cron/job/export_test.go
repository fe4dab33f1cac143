package job

// Table gives the names of a part's fields, in the order of its table; nil where the type has none.
func Table(v any) (names []string) {
	if n, ok := v.(noun); ok {
		for _, f := range n.fields() {
			names = append(names, f.name)
		}
	}
	return names
}

// Or joins names as errors do.
func Or(names []string) string { return or(names) }
