package guard

import "time"

// Usage is what the direct child of a run used, and those of its descendants that it has waited for itself. 0 is unknown.
type Usage struct {
	User   time.Duration `json:"user,omitempty"`
	Sys    time.Duration `json:"sys,omitempty"`
	MaxRSS int64         `json:"max_rss,omitempty"` // bytes; on Linux not less than the guard's own, which a child shares until its exec
}
