package record

import (
	"fmt"
	"strings"

	"github.com/go-coord/coord/internal/hold"
)

// Root is where all keys of distributed cron live.
const Root = hold.Root + "cron/"

// The areas below Root. Each is a range that ends in '/', so that no name sees another one that begins with it.
const (
	Jobs    = Root + "job/"
	Fires   = Root + "fire/"
	Runs    = Root + "run/"
	Results = Root + "result/"
	Cursors = Root + "cursor/"
	Nodes   = Root + "node/" // registrations of daemons, as coord has them
	State   = Root + "state/"

	Opens  = State + "open/"
	Wants  = State + "want/"
	Kills  = State + "kill/"
	Cards  = State + "card/"
	Drains = State + "drain/"
	Pause  = State + "pause" // one key: the whole cluster
)

// JobKey is where a job's spec stands.
func JobKey(name string) string { return Jobs + name }

// CursorKey is the cursor of a job; host is empty but for a job that runs on all hosts.
func CursorKey(name, host string) string {
	if host == "" {
		return Cursors + name
	}
	return Cursors + name + "@" + host
}

// ParseCursor takes a cursor's key apart.
func ParseCursor(key string) (name, host string, err error) {
	rest, ok := strings.CutPrefix(key, Cursors)
	if !ok {
		return "", "", keyError(key, "is not below "+Cursors)
	}
	name, host, all := strings.Cut(rest, "@")
	if hold.ValidName(name) != nil || all && hold.ValidName(host) != nil {
		return "", "", keyError(key, "has no valid name")
	}
	return name, host, nil
}

// Key is a key of one start: an area, a job and an id.
func Key(area, name string, id ID) string { return area + name + "/" + id.String() }

// Range is the range of all keys of one job in an area of starts.
func Range(area, name string) string { return area + name + "/" }

// OpenKey is the open record of one start. Those of one host lie together, as the starts of a job lie that runs on all hosts:
// there the hosts do not exclude each other.
func OpenKey(name string, id ID) string { return OpenRange(name, id.Host) + id.String() }

// OpenRange is the range of the open records that exclude each other under overlap "forbid".
func OpenRange(name, host string) string {
	if host == "" {
		return Opens + name + "/"
	}
	return Opens + name + "@" + host + "/"
}

// ParseOpen takes the key of an open record apart.
func ParseOpen(key string) (name string, id ID, err error) {
	rest, ok := strings.CutPrefix(key, Opens)
	if !ok {
		return "", ID{}, keyError(key, "is not below "+Opens)
	}
	owner, last, ok := strings.Cut(rest, "/")
	name, host, _ := strings.Cut(owner, "@")
	if !ok || hold.ValidName(name) != nil {
		return "", ID{}, keyError(key, "has no valid name")
	}
	if id, err = ParseID(last); err == nil && id.Host != host {
		err = keyError(key, "names two hosts")
	}
	return name, id, err
}

// ParseKey takes a key of one start apart. It is strict: a key that Key would not have written is an error.
func ParseKey(area, key string) (name string, id ID, err error) {
	rest, ok := strings.CutPrefix(key, area)
	if !ok {
		return "", ID{}, keyError(key, "is not below "+area)
	}
	name, last, ok := strings.Cut(rest, "/")
	if !ok || hold.ValidName(name) != nil {
		return "", ID{}, keyError(key, "has no valid name")
	}
	id, err = ParseID(last)
	return name, id, err
}

// ParseName takes a key of an area apart that has one name and no more: a job, a node, a drain.
func ParseName(area, key string) (string, error) {
	name, ok := strings.CutPrefix(key, area)
	if !ok {
		return "", keyError(key, "is not below "+area)
	}
	if hold.ValidName(name) != nil {
		return "", keyError(key, "has no valid name")
	}
	return name, nil
}

func keyError(key, what string) error {
	return fmt.Errorf(`parse key "%s": it %s`, hold.EscapeCut(key, 80), what)
}
