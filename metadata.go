package coord

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// What hosts go by unless their options say otherwise.
const (
	// HostsPrefix is where hosts register: the key of a host is HostsPrefix + its UUID.
	HostsPrefix = "/coord/hosts/"
	// DefaultLeaseTTLSec is the lease time of a host in seconds: how long a dead one still looks alive. etcd
	// looks for leases that are over twice a second, revokes at most 1000 a second, and starts all of them
	// anew when its leader changes, so that a host can look alive for longer, but never for less.
	DefaultLeaseTTLSec = 10
	// DefaultRefreshInterval is the time from one renewal to the next under that lease time.
	DefaultRefreshInterval = 3 * time.Second
)

// Limits of what a host says of itself. Every watcher decodes it, and keeps it.
const (
	// nameLimit is the longest UUID, label key and label value, in bytes.
	nameLimit = 200
	// hostLimit is the largest value of a host's key, in bytes. A larger one is not decoded.
	hostLimit = 8 << 10
)

// HostMetadata is what a host says of itself: the value of its key, as JSON. Keep it small.
//
// What is read from etcd was written by anybody who may write there: escape its text before it is printed.
type HostMetadata struct {
	// HostUUID names the host, and is the last element of its key: 1 to 200 bytes of letters, digits, '.',
	// '_' and '-', the first a letter or a digit, without "..". Required.
	HostUUID string `json:"host_uuid"`
	// Hostname, Hypervisor and Version are for people.
	Hostname   string `json:"hostname"`
	Hypervisor string `json:"hypervisor"`
	Version    string `json:"version"`
	// StartedAt is when the process that speaks for the host started, in nanoseconds since 1970, by that
	// host's clock. It tells one life of a host from the next. Default: the time of the registration.
	StartedAt int64 `json:"started_at_unix_ns"`
	// Labels are for selecting hosts. A key is made of what a UUID is made of, and '/'; a value is text
	// without commas. Both have at most 200 bytes. Maps that this package hands out are the caller's own.
	Labels map[string]string `json:"labels,omitempty"`
}

// Validate says whether m can be registered, without asking anybody. An error wraps [ErrInvalidOption] and
// names what is wrong.
func (m HostMetadata) Validate() error {
	if why := badName(m.HostUUID, ""); why != "" {
		return fmt.Errorf("%w: host uuid %.40q %s", ErrInvalidOption, m.HostUUID, why)
	}
	for key, value := range m.Labels {
		if why := cmp.Or(badName(key, "/"), badValue(value)); why != "" {
			return fmt.Errorf("%w: label %.40q=%.40q %s", ErrInvalidOption, key, value, why)
		}
	}
	// The longest value is the one that says goodbye.
	if n := len(encodeStopping(m)); n > hostLimit {
		return fmt.Errorf("%w: host metadata has %d bytes, at most %d are accepted", ErrInvalidOption, n, hostLimit)
	}
	return nil
}

// badName says what keeps s from being a name; "" where nothing does. Bytes of also are letters.
func badName(s, also string) string {
	switch {
	case s == "":
		return "is empty"
	case len(s) > nameLimit:
		return fmt.Sprintf("has %d bytes, at most %d are accepted", len(s), nameLimit)
	case !alnum(s[0]):
		return "has to start with a letter or a digit"
	case strings.Contains(s, ".."):
		return `contains ".."`
	}
	for i := range len(s) {
		if !alnum(s[i]) && !strings.Contains("._-"+also, s[i:i+1]) {
			return fmt.Sprintf("contains %q, which is none of letters, digits and %q", s[i], "._-"+also)
		}
	}
	return ""
}

func alnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// badValue says what keeps s from being the value of a label; "" where nothing does.
func badValue(s string) string {
	switch {
	case len(s) > nameLimit:
		return fmt.Sprintf("has a value of %d bytes, at most %d are accepted", len(s), nameLimit)
	case !utf8.ValidString(s):
		return "has a value that is not UTF-8"
	case strings.Contains(s, ",") || strings.ContainsFunc(s, unicode.IsControl):
		return "has a value with a comma or a control character"
	}
	return ""
}

// hostKey is the key of the host uuid. Like the prefix of an election, that of hosts ends in "/", whether or
// not the option does; "" stands for HostsPrefix.
func hostKey(prefix, uuid string) string { return prefixOf(cmp.Or(prefix, HostsPrefix)) + uuid }

// hostValue is what a host's key holds.
type hostValue struct {
	HostMetadata
	Stopping bool `json:"stopping,omitempty"` // the host says goodbye: its key goes on purpose
}

// encodeHost is the value of a live host's key.
func encodeHost(m HostMetadata) string { return hostValue{HostMetadata: m}.encode() }

// encodeStopping is the last value of a host's key, put right before its lease is revoked, so that watchers
// can tell a host that was stopped from one that fell silent.
func encodeStopping(m HostMetadata) string {
	return hostValue{HostMetadata: m, Stopping: true}.encode()
}

func (v hostValue) encode() string {
	raw, _ := json.Marshal(v) // strings and numbers: nothing in it can fail
	return string(raw)
}

var errHostTooLarge = fmt.Errorf("more than the %d bytes that are read", hostLimit)

// readHost reads a host's key and its value. The key decides who the host is, whatever the value says. A value
// that is none is an error, and the host is alive all the same: what is returned then has its UUID.
func readHost(kv *mvccpb.KeyValue) (hostValue, error) {
	key := string(kv.Key)
	uuid := key[strings.LastIndexByte(key, '/')+1:]
	v, err := hostValue{}, errHostTooLarge
	if len(kv.Value) <= hostLimit {
		err = json.Unmarshal(kv.Value, &v)
	}
	if err != nil {
		return hostValue{HostMetadata: HostMetadata{HostUUID: uuid}}, fmt.Errorf("decode host %.40q: %w", uuid, err)
	}
	v.HostUUID = uuid
	return v, nil
}

// DecodeHost reads the key of a host, for who lists them in a request of its own. The key decides who the host is, whatever
// its value says. A value that is none is an error, and the host is up all the same: what is returned then has its UUID.
func DecodeHost(kv *mvccpb.KeyValue) (HostMetadata, error) {
	v, err := readHost(kv)
	return v.HostMetadata, err
}

// reading is a host's key and what readHost made of it.
type reading struct {
	kv    *mvccpb.KeyValue
	value hostValue
	err   error
}

func read(kv *mvccpb.KeyValue) reading {
	v, err := readHost(kv)
	return reading{kv, v, err}
}

// readAll reads all at once: decoding is most of the work of a list.
func readAll(kvs []*mvccpb.KeyValue) []reading {
	all := make([]reading, len(kvs))
	share := len(kvs)/runtime.GOMAXPROCS(0) + 1
	var wg sync.WaitGroup
	for from := 0; from < len(kvs); from += share {
		wg.Go(func() {
			for i := from; i < min(from+share, len(kvs)); i++ {
				all[i] = read(kvs[i])
			}
		})
	}
	wg.Wait()
	return all
}

// clone is m with labels of its own.
func (m HostMetadata) clone() HostMetadata {
	m.Labels = maps.Clone(m.Labels)
	return m
}

// same reports whether two hosts say the same of themselves.
func (m HostMetadata) same(o HostMetadata) bool {
	return m.HostUUID == o.HostUUID && m.Hostname == o.Hostname && m.Hypervisor == o.Hypervisor &&
		m.Version == o.Version && m.StartedAt == o.StartedAt && maps.Equal(m.Labels, o.Labels)
}
