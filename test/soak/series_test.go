package soak

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// series is one thing that was measured at equal distances.
type series struct {
	name  string
	scale float64 // what one unit of the table is
	slack float64 // by how much it may rise, beside a share of its mean
	at    []float64
}

// share of its mean is how much a series may rise from the end of the warm-up to the end.
const share = 0.1

// warm is what is left of the samples when the first fifth is left out.
func (s *series) warm() []float64 { return s.at[len(s.at)/5:] }

// line fits a line to the samples and gives its rise from the first to the last of them, and the mean.
func line(y []float64) (rise, mean float64) {
	n := float64(len(y))
	var sx, sy, sxx, sxy float64
	for i, v := range y {
		x := float64(i)
		sx, sy, sxx, sxy = sx+x, sy+v, sxx+x*x, sxy+x*v
	}
	if d := n*sxx - sx*sx; d > 0 {
		rise = (n*sxy - sx*sy) / d * (n - 1)
	}
	return rise, sy / n
}

// judge says in a line what became of a series, and fails the test if it rises and was looked at for long enough to tell.
func (s *series) judge(t *testing.T, long bool) string {
	t.Helper()
	y := s.warm()
	rise, mean := line(y)
	text := fmt.Sprintf("%-22s %9.2f to %9.2f, mean %9.2f, fitted rise %+8.2f", s.name,
		slices.Min(y)/s.scale, slices.Max(y)/s.scale, mean/s.scale, rise/s.scale)
	if allowed := math.Max(share*mean, s.slack); long && rise > allowed {
		t.Errorf("it grows: %s, at most %.2f", text, allowed/s.scale)
	}
	return text
}

// table is what became of all.
func table(t *testing.T, all []*series, long bool) string {
	t.Helper()
	var lines []string
	for _, s := range all {
		lines = append(lines, s.judge(t, long))
	}
	return strings.Join(lines, "\n")
}

func TestALineThatRisesIsSeen(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		of   []float64
		rise float64
		mean float64
	}{
		{[]float64{1, 2, 3, 4, 5}, 4, 3},
		{[]float64{5, 5, 5}, 0, 5},
		{[]float64{9, 1, 9, 1, 9}, 0, 5.8},
		{[]float64{7}, 0, 7},
	} {
		if rise, mean := line(row.of); math.Abs(rise-row.rise) > 1e-9 || math.Abs(mean-row.mean) > 1e-9 {
			t.Errorf("%v: rise %v, mean %v; want %v, %v", row.of, rise, mean, row.rise, row.mean)
		}
	}
}
