package manifest

import (
	"bytes"
	"fmt"
	"strings"
)

// context is how many lines that are the same are shown around those that are not.
const context = 3

// diffMost is up to how many pairs of lines are compared. Beyond it what differs is shown as a whole.
const diffMost = 4 << 20

// edit is one line of a comparison: kept (' '), gone ('-') or new ('+').
type edit struct {
	sign byte
	line string
}

// Diff is what turns the lines of one text into those of another, in the unified format, under the names of both; nothing where they
// are the same.
func Diff(fromName, toName string, from, to []string) string {
	edits := compare(from, to)
	var out bytes.Buffer
	old, young := 0, 0 // lines before the edit at hand
	for i := 0; i < len(edits); {
		if edits[i].sign == ' ' {
			old, young, i = old+1, young+1, i+1
			continue
		}
		if out.Len() == 0 {
			fmt.Fprintf(&out, "--- %s\n+++ %s\n", fromName, toName)
		}
		start, end := max(0, i-context), hunkEnd(edits, i)
		hunk(&out, edits[start:end], old-(i-start), young-(i-start))
		for ; i < end; i++ {
			if edits[i].sign != '+' {
				old++
			}
			if edits[i].sign != '-' {
				young++
			}
		}
	}
	return out.String()
}

// hunkEnd is where the hunk ends that begins at a change: so far behind the last one that no other is near.
func hunkEnd(edits []edit, i int) int {
	last := i
	for ; i < len(edits) && i-last <= 2*context; i++ {
		if edits[i].sign != ' ' {
			last = i
		}
	}
	return min(len(edits), last+1+context)
}

// hunk writes one, which begins after so many lines of both.
func hunk(out *bytes.Buffer, edits []edit, old, young int) {
	var text strings.Builder
	gone, kept, added := 0, 0, 0
	for _, e := range edits {
		switch e.sign {
		case '-':
			gone++
		case '+':
			added++
		default:
			kept++
		}
		fmt.Fprintf(&text, "%c%s\n", e.sign, e.line)
	}
	span := func(before, n int) string {
		if n > 0 {
			before++ // the first line of it; of nothing, the line before
		}
		return fmt.Sprintf("%d,%d", before, n)
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n%s", span(old, kept+gone), span(young, kept+added), text.String())
}

// compare finds the longest common subsequence, between what both begin and end with.
func compare(from, to []string) (edits []edit) {
	head := 0
	for head < len(from) && head < len(to) && from[head] == to[head] {
		edits = append(edits, edit{' ', from[head]})
		head++
	}
	tail := 0
	for tail < len(from)-head && tail < len(to)-head && from[len(from)-1-tail] == to[len(to)-1-tail] {
		tail++
	}
	a, b := from[head:len(from)-tail], to[head:len(to)-tail]
	edits = append(edits, between(a, b)...)
	for _, line := range from[len(from)-tail:] {
		edits = append(edits, edit{' ', line})
	}
	return edits
}

func between(a, b []string) (edits []edit) {
	var common [][]int32 // of the rest from a line of each on
	if len(a)*len(b) <= diffMost {
		common = make([][]int32, len(a)+1)
		common[len(a)] = make([]int32, len(b)+1)
		for i := len(a) - 1; i >= 0; i-- {
			common[i] = make([]int32, len(b)+1)
			for j := len(b) - 1; j >= 0; j-- {
				common[i][j] = max(common[i+1][j], common[i][j+1])
				if a[i] == b[j] {
					common[i][j] = common[i+1][j+1] + 1
				}
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case common != nil && i < len(a) && j < len(b) && a[i] == b[j]:
			edits = append(edits, edit{' ', a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common == nil || common[i+1][j] >= common[i][j+1]):
			edits = append(edits, edit{'-', a[i]})
			i++
		default:
			edits = append(edits, edit{'+', b[j]})
			j++
		}
	}
	return edits
}
