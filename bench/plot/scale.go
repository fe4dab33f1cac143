package plot

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// scale maps values to pixels.
type scale struct {
	log      bool
	low      float64 // values at the ends
	high     float64
	from, to float64 // pixels at the ends
}

// newScale makes one that has room for all values, and ends at round ones. A linear one begins at zero.
func newScale(log bool, from, to float64, values []float64) (scale, error) {
	if len(values) == 0 {
		return scale{}, errors.New("no points")
	}
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 || log && v == 0 {
			return scale{}, fmt.Errorf("%v has no place here", v)
		}
	}
	s := scale{log: log, high: slices.Max(values), from: from, to: to}
	if !log {
		if s.high == 0 {
			s.high = 1
		}
		s.high = math.Ceil(s.high/s.step()*(1-1e-9)) * s.step()
		return s, nil
	}
	s.low = roundDown(slices.Min(values))
	if s.high = roundUp(s.high); s.high <= s.low {
		s.high = 10 * s.low
	}
	return s, nil
}

func (s scale) at(v float64) float64 {
	part := (v - s.low) / (s.high - s.low)
	if s.log {
		part = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return s.from + part*(s.to-s.from)
}

// step is the distance of ticks of a linear scale: 1, 2 or 5 of some power of ten, five or so of them.
func (s scale) step() float64 {
	unit := math.Pow(10, math.Floor(math.Log10(s.high/5)))
	for _, n := range []float64{1, 2, 5} {
		if n*unit >= s.high/6 {
			return n * unit
		}
	}
	return 10 * unit
}

func (s scale) ticks() (all []float64) {
	if !s.log {
		step := s.step()
		for i := 0.0; i*step <= s.high*(1+1e-9); i++ {
			all = append(all, i*step)
		}
		return all
	}
	// Three ticks a decade where there is room for them.
	steps := []float64{1, 2, 5}
	if s.high/s.low > 2000 {
		steps = steps[:1]
	}
	for unit := math.Pow(10, math.Floor(math.Log10(s.low))); unit <= s.high*(1+1e-9); unit *= 10 {
		for _, n := range steps {
			if v := n * unit; v >= s.low*(1-1e-9) && v <= s.high*(1+1e-9) {
				all = append(all, v)
			}
		}
	}
	return all
}

// roundDown is the next 1, 2 or 5 of a power of ten that is not above v.
func roundDown(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{5, 2} {
		if n*unit <= v*(1+1e-9) {
			return n * unit
		}
	}
	return unit
}

// roundUp is the next 1, 2 or 5 of a power of ten that is not below v.
func roundUp(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 5} {
		if n*unit >= v*(1-1e-9) {
			return n * unit
		}
	}
	return 10 * unit
}
