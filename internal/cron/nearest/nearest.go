// Package nearest finds what was probably meant where a word was mistyped, so that an error can say it. It never corrects
// anything: who typed decides.
//
// It is not promised that what is found was meant, nor that anything is found: a word that is far from all others has no
// nearest one.
package nearest

import "strings"

// most is how many slips a word may be away from the one that was meant.
const most = 2

// Hint is the end of an error that knows better; nothing where near is "".
func Hint(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// Name gives the name that was probably meant: the one that is the fewest slips away from what was typed, two at most, where one that
// begins it, as JAN does in january, is two away. It is "" where there is none. Of equals it is the first.
func Name(typed string, names []string) string {
	best, least := "", most+1
	for _, name := range names {
		d := Slips(most, strings.ToUpper(typed), strings.ToUpper(name))
		if len(typed) > len(name) && strings.EqualFold(typed[:len(name)], name) {
			d = min(d, most)
		}
		if d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// Slips is how many letters have to be put in, left out, replaced or swapped with their neighbour to make b of a: or, where these are
// more than most, any larger number, which costs nothing where the lengths tell.
func Slips(most int, a, b string) int {
	if d := max(len(a)-len(b), len(b)-len(a)); d > most {
		return d
	}
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
