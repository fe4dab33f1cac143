package schedule

import "strings"

// meant is the end of an error that knows better.
func meant(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// nearest gives the name that was probably meant: one that begins what was typed, as SEP does in sept, or that is at most two slips
// away from it. It is "" where there is none.
func nearest(typed string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		d := slips(strings.ToUpper(typed), strings.ToUpper(name))
		if len(typed) > len(name) && strings.EqualFold(typed[:len(name)], name) {
			d = 0
		}
		if d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// slipsUpTo is slips, or any larger number where there are more than most.
func slipsUpTo(most int, a, b string) int {
	if d := max(len(a)-len(b), len(b)-len(a)); d > most {
		return d
	}
	return slips(a, b)
}

// slips is how many letters have to be put in, left out, replaced or swapped with their neighbour to make b of a.
func slips(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
