package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// readLast reads the days of a month that no number names: L, LW and nW.
func (e *element) readLast(f *field, upper string) error {
	const want = "L (the last day), LW (the last of Monday to Friday) or 15W (the one of these nearest the 15th)"
	day, weekday := strings.CutSuffix(upper, "W")
	switch {
	case upper == "L":
		f.last = true
		return nil
	case upper == "LW":
		f.lastWeekday = true
		return nil
	case !weekday:
		return e.refuse(e.text, want, "")
	}
	n, ok := number(day)
	if !ok || n < e.kind.min || n > e.kind.top {
		return e.refuse(e.text, want, "")
	}
	f.nearest |= 1 << n
	return nil
}

// readNth reads the weekdays of a month that are counted: nL and n#k.
func (e *element) readNth(f *field, upper string) error {
	const want = "5L or FRIL (the last Friday of the month), 5#3 or FRI#3 (the third)"
	day, k, counted := strings.Cut(strings.TrimSuffix(upper, "L"), "#")
	if upper == "L" || counted && strings.HasSuffix(upper, "L") {
		return e.refuse(e.text, want, "")
	}
	v, err := e.value(day)
	if err != nil {
		return err
	}
	if !counted {
		f.lastOf |= 1 << e.fold(v)
		return nil
	}
	n, ok := number(k)
	if !ok || n < 1 || n > 5 {
		return e.refuse(e.text, "a count of 1 to 5 after the #; "+want, "")
	}
	f.nth[n] |= 1 << e.fold(v)
	return nil
}

// readHash reads H: one value, or where a step starts, picked by the job's name. H/n counts as a star, as */n does.
func (e *element) readHash(f *field, base string, step int, stepped bool) (star bool, err error) {
	k := e.kind
	lo, hi, bounded := k.min, k.hashed, base != "H"
	if bounded {
		from, to, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(base, "H("), ")"), "-")
		if !ok || !strings.HasPrefix(base, "H(") || !strings.HasSuffix(base, ")") {
			return false, e.refuse(e.text, "H, or H(a-b), each of a and b "+k.accepts(), "")
		}
		if lo, err = e.value(from); err != nil {
			return false, err
		}
		if hi, err = e.value(to); err != nil {
			return false, err
		}
		if lo > hi {
			return false, e.refuse(e.text, "a range of H that rises", "")
		}
	}
	if e.job == "" {
		return false, e.refuse(e.text, "a number here: H is made from the name of a job, and there is none", "")
	}
	switch {
	case !stepped:
		v := lo + pick(k.name, e.job, hi-lo+1)
		e.add(f, v, v, 1)
		return false, nil
	case step > hi-lo+1:
		return false, e.refuse(e.text, "a step no longer than the range", "")
	}
	start := lo + pick(k.name, e.job, step)
	if bounded || hi < k.max {
		e.add(f, start, hi, step)
	} else {
		e.addOpen(f, start, step)
	}
	return !bounded, nil
}

// pick gives a number below n, the same one for a job and a field for ever: it is part of what a tick is. It is the first eight bytes,
// big endian, of the SHA-256 of the field's name, a zero byte and the job's name, modulo n.
func pick(field, job string, n int) int {
	sum := sha256.Sum256([]byte(field + "\x00" + job))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(n))
}
