//go:build linux

package main

import "slices"

// result is one line of the outcome. What does not apply is nil.
type result struct {
	Case     string   `json:"case"`
	Name     string   `json:"name"`
	Unit     string   `json:"unit"`
	Ours     *figure  `json:"ours"`
	Peer     string   `json:"peer,omitempty"`
	Peers    *figure  `json:"peers,omitempty"`
	Ratio    *figure  `json:"ratio,omitempty"`
	MaxRatio *float64 `json:"max_ratio,omitempty"` // target for Ratio
	MinRatio *float64 `json:"min_ratio,omitempty"` // target for Ratio
	Limit    *float64 `json:"limit,omitempty"`     // target for Ours: its greatest, not its median
	Load     float64  `json:"load"`                // load average when the case began
}

// etcdctlLock is the peer of the wrapper.
const etcdctlLock = "etcdctl lock"

// compare holds one series against another.
func compare(name, unit string, ours, peer series) result {
	return result{Name: name, Unit: unit, Ours: ours.figure(), Peer: peer.name, Peers: peer.figure(), Ratio: ours.over(peer)}
}

func (r result) atMost(ratio float64) result  { r.MaxRatio = &ratio; return r }
func (r result) atLeast(ratio float64) result { r.MinRatio = &ratio; return r }
func (r result) within(limit float64) result  { r.Limit = &limit; return r }

// alone is a result without a peer.
func alone(name, unit string, ours series) result {
	return result{Name: name, Unit: unit, Ours: ours.figure()}
}

// once is a series of one number.
func once(name string, v float64) series { return series{name, [][]float64{{v}}} }

// met reports whether every target is met.
func (r result) met() bool {
	return (r.MaxRatio == nil || r.Ratio != nil && r.Ratio.Median <= *r.MaxRatio) &&
		(r.MinRatio == nil || r.Ratio != nil && r.Ratio.Median >= *r.MinRatio) &&
		(r.Limit == nil || r.Ours != nil && r.Ours.Max <= *r.Limit)
}

// unsure reports whether some rounds met a target of the ratio, and others missed it.
func (r result) unsure() bool {
	for _, target := range []*float64{r.MaxRatio, r.MinRatio} {
		if target != nil && r.Ratio != nil && r.Ratio.Min <= *target && *target <= r.Ratio.Max && r.Ratio.N > 1 {
			return true
		}
	}
	return false
}

// hasTarget reports whether there is something to meet.
func (r result) hasTarget() bool { return r.MaxRatio != nil || r.MinRatio != nil || r.Limit != nil }

// verdict is met or MISSED, and says where a repetition might say otherwise.
func (r result) verdict() string {
	v := "met"
	switch {
	case !r.hasTarget():
		return ""
	case !r.met():
		v = "MISSED"
	}
	if r.unsure() {
		v += ", within the spread"
	}
	return v
}

// missed reports whether any target is missed.
func missed(results []result) bool {
	return slices.ContainsFunc(results, func(r result) bool { return !r.met() })
}
