package schedule

// The searches below look at this many steps at most, a step being a month of the calendar or a segment of the zone. No expression and
// zone come near it; it is here so that a database with rules nobody thought of costs a tick, not a core.
const maxSteps = 5000

// horizon is how far a search goes: the ten calendar years after the one it starts in, in seconds.
const horizon = (years + 1) * 366 * day

// reach is how long it takes until no clock can show again what it showed before: the distance of the two farthest offsets.
const reach = 2 * maxOffset

// search is one search for a tick, in a zone.
type search struct {
	calendar *calendar
	zone     *Zone
	dst      DST
	steps    int
}

// next gives the first tick at or after t, prev the last at or before it.
func (s *search) next(t int64) (int64, bool) {
	if s.shown() {
		return s.nextShown(t)
	}
	return s.nextFirst(t)
}

func (s *search) prev(t int64) (int64, bool) {
	if s.shown() {
		return s.prevShown(t)
	}
	return s.prevFirst(t)
}

// shown reports whether there is a tick whenever the clock shows a matching wall time, not only the first time.
func (s *search) shown() bool { return s.calendar.realTime || s.dst == DSTLiteral }

// segment asks the zone, and counts.
func (s *search) segment(t int64) segment {
	s.steps++
	return s.zone.at(t)
}

// nextShown goes from segment to segment until one shows a matching wall time.
func (s *search) nextShown(t int64) (int64, bool) {
	for at := t; at <= t+horizon && s.steps < maxSteps; {
		here := s.segment(at)
		wall, ok := s.calendar.next(at+here.offset, &s.steps)
		if !ok {
			break
		}
		if tick := wall - here.offset; tick < here.end {
			return tick, true
		}

		// What lies between what the clock shows at this moment and wall does not match. A while from now no clock can be
		// behind the one, and until a while before then none can have come to the other.
		if here.end >= at+reach {
			at = max(here.end, wall-maxOffset)
		} else {
			at = here.end
		}
	}
	return 0, false
}

// prevShown is nextShown in the other direction.
func (s *search) prevShown(t int64) (int64, bool) {
	for at := t; at >= t-horizon && s.steps < maxSteps; {
		start, here := s.back(at)
		wall, ok := s.calendar.prev(at+here.offset, &s.steps)
		if !ok {
			break
		}
		if tick := wall - here.offset; tick >= start {
			return tick, true
		}
		if start == at-reach {
			at = min(start-1, wall+maxOffset)
		} else {
			at = start - 1
		}
	}
	return 0, false
}

// back gives the segment that a moment is in, and where it starts; or a moment of it, if it starts more than reach ago.
func (s *search) back(t int64) (start int64, here segment) {
	start = t - reach
	for here = s.segment(start); here.end <= t; here = s.segment(start) {
		start = here.end
	}
	return start, here
}

// nextFirst takes the first matching wall time that was not shown, nor passed over, before t.
func (s *search) nextFirst(t int64) (int64, bool) {
	for wall := s.mark(t); s.steps < maxSteps; {
		matching, ok := s.calendar.next(wall, &s.steps)
		if !ok {
			break
		}
		tick, shows := s.first(matching)
		if tick > t+horizon {
			break
		}
		if shows == matching || s.dst != DSTSkip {
			return tick, true
		}

		// The clock never shows it: go on with what it shows after the gap.
		wall = shows
	}
	return 0, false
}

// prevFirst takes the last matching wall time that was shown, or passed over, until t.
func (s *search) prevFirst(t int64) (int64, bool) {
	for end := s.mark(t + 1); s.steps < maxSteps; {
		matching, ok := s.calendar.prev(end-1, &s.steps)
		if !ok {
			break
		}
		tick, shows := s.first(matching)
		if tick < t-horizon {
			break
		}
		if shows == matching || s.dst != DSTSkip {
			return tick, true
		}

		// The clock never shows it: go on with what it showed before the gap.
		end = s.mark(tick)
	}
	return 0, false
}

// first gives the first moment at which the clock shows a wall time or a later one, and what it shows then.
func (s *search) first(wall int64) (at, shows int64) {
	at = wall - maxOffset
	here := s.segment(at)
	for max(at, wall-here.offset) >= here.end {
		at = here.end
		here = s.segment(at)
	}
	at = max(at, wall-here.offset)
	return at, at + here.offset
}

// mark gives the lowest wall time that was neither shown nor passed over before t.
func (s *search) mark(t int64) int64 {
	at := t - reach
	mark := at - maxOffset
	for at < t {
		here := s.segment(at)
		end := min(here.end, t)
		mark = max(mark, end+here.offset)
		at = end
	}
	return mark
}
