package job

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Strings is a list of texts. A list of one is written as a text.
type Strings []string

// MarshalJSON writes a text, or a list of texts.
func (s Strings) MarshalJSON() ([]byte, error) {
	if len(s) == 1 {
		return encode(s[0])
	}
	return encode([]string(s))
}

// EnvValue is what a variable of the environment is set to: Value, or, if File is given, what is in that file on the node,
// so that a secret need not stand in etcd.
type EnvValue struct {
	Value string
	File  string
}

// MarshalJSON writes a text, or an object with the file.
func (v EnvValue) MarshalJSON() ([]byte, error) {
	if v.File == "" {
		return encode(v.Value)
	}
	return encode(struct {
		File string `json:"file"`
	}{v.File})
}

// MarshalJSON writes an object, or the policy alone, if that is all that was said.
func (c Catchup) MarshalJSON() ([]byte, error) {
	if c == (Catchup{Policy: c.Policy}) {
		return json.Marshal(c.Policy)
	}
	type object Catchup
	return encode(object(c))
}

// Duration is a length of time. In JSON it is a text as time.ParseDuration reads it, and never a number, of which nobody would know
// what it counts.
type Duration time.Duration

// String writes it as people do: 12h, not 12h0m0s.
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText writes what String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// ParseDuration reads a length of time, such as 90s, 1h30m or 12h.
func ParseDuration(text string) (Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%w: duration %s: want a number and a unit, such as 90s, 1h30m or 12h", ErrSpec, quote(text))
	}
	return Duration(d), nil
}

// Size is a number of bytes. In JSON it is a text: 512B, 16KiB, 10MiB or 1GiB.
type Size int64

// sizes are the units, the largest first.
var sizes = []struct {
	name  string
	bytes Size
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// String writes it in the largest unit that leaves no fraction.
func (s Size) String() string {
	unit := sizes[len(sizes)-1]
	for _, u := range sizes {
		if s != 0 && s%u.bytes == 0 {
			unit = u
			break
		}
	}
	return strconv.FormatInt(int64(s/unit.bytes), 10) + unit.name
}

// MarshalText writes what String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseSize reads a whole number of bytes, KiB, MiB or GiB.
func ParseSize(text string) (Size, error) {
	for _, u := range sizes {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(digits, 10, 63); err == nil && Size(n) <= math.MaxInt64/u.bytes {
			return Size(n) * u.bytes, nil
		}
		break
	}
	return 0, fmt.Errorf("%w: size %s: want a whole number and a unit, B, KiB, MiB or GiB, such as 16KiB", ErrSpec, quote(text))
}
