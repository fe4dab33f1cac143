package coord

import (
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ward is one kind of a semaphore's keys: <base>/<max>/<name>. One max is the semaphore's own, and whatever lies
// left and right of it is of another.
type ward struct {
	all string // <base>/
	own string // <base>/<max>/
}

func newWard(base string, max int) ward {
	all := prefixOf(base)
	return ward{all: all, own: all + strconv.Itoa(max) + "/"}
}

// at is the key of a slot.
func (w ward) at(slot int) string { return w.own + strconv.Itoa(slot) }

// beside are the two ranges of the other maxima, each from its first key to the one after its last.
func (w ward) beside() [2][2]string {
	return [2][2]string{{w.all, w.own}, {clientv3.GetPrefixRangeEnd(w.own), clientv3.GetPrefixRangeEnd(w.all)}}
}

// alone are the compares that no key of another max is there.
func (w ward) alone() (cmps []clientv3.Cmp) {
	for _, r := range w.beside() {
		cmps = append(cmps, clientv3.Compare(clientv3.CreateRevision(r[0]), "=", 0).WithRange(r[1]))
	}
	return cmps
}

// others are the reads of the keys of another max.
func (w ward) others() (ops []clientv3.Op) {
	for _, r := range w.beside() {
		ops = append(ops, clientv3.OpGet(r[0], clientv3.WithRange(r[1]), clientv3.WithLimit(queueLimit)))
	}
	return ops
}

// maxOf is the max under which key lies; 0 where it is no number.
func (w ward) maxOf(key string) int {
	name, _, _ := strings.Cut(strings.TrimPrefix(key, w.all), "/")
	return max(numberOf(name), 0)
}

// numberOf reads a part of a key as a number; -1 where it is none.
func numberOf(name string) int {
	n, err := strconv.Atoi(name)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// slotOf is the number that key ends in, and whether it is one of a slot of max.
func slotOf(prefix, key string, max int) (int, bool) {
	name := strings.TrimPrefix(key, prefix)
	n := numberOf(name)
	return n, n >= 0 && n < max && strconv.Itoa(n) == name
}

// bySlot sorts keys of the own max by their slots. What is no slot's is left out.
func (w ward) bySlot(kvs []*mvccpb.KeyValue, max int) map[int]*mvccpb.KeyValue {
	slots := map[int]*mvccpb.KeyValue{}
	for _, kv := range kvs {
		if n, ok := slotOf(w.own, string(kv.Key), max); ok {
			slots[n] = kv
		}
	}
	return slots
}
