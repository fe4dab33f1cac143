// Package plot draws line charts as SVG: axes with units, ticks, a legend, a marker of its own for each line. What is
// drawn is readable on white and on black, follows what the reader's system prefers, and is the same, byte for byte, for
// the same numbers, so that a chart in version control changes only when its numbers do.
//
// It is no plotting library: there is one kind of chart, of one size, with at most six lines.
package plot
