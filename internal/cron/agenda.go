package cron

import (
	"container/heap"
	"time"
)

// agenda is when to look at which job: a heap by time.
type agenda []*entry

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, k int) bool { return a[i].at.Before(a[k].at) }
func (a agenda) Swap(i, k int) {
	a[i], a[k] = a[k], a[i]
	a[i].place, a[k].place = i, k
}

// Push and Pop are heap.Interface's.
func (a *agenda) Push(x any) {
	e := x.(*entry)
	e.place = len(*a)
	*a = append(*a, e)
}

func (a *agenda) Pop() any {
	old := *a
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	e.place = -1
	return e
}

// set has e looked at at a moment; zero: not by itself.
func (a *agenda) set(e *entry, at time.Time) {
	e.at = at
	switch {
	case e.place >= 0 && at.IsZero():
		heap.Remove(a, e.place)
	case e.place >= 0:
		heap.Fix(a, e.place)
	case !at.IsZero():
		heap.Push(a, e)
	}
}

// due takes out the first that is due.
func (a *agenda) due(now time.Time) (*entry, bool) {
	if len(*a) == 0 || now.Before((*a)[0].at) {
		return nil, false
	}
	return heap.Pop(a).(*entry), true
}
