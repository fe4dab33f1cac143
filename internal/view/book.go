package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Book is everything that stands at one revision, by name, for who follows it. It is not safe for concurrent use.
type Book struct {
	Rev   int64
	names map[Name]map[string]Entry
}

// NewBook makes a book of the keys that there are at a revision.
func NewBook(entries []Entry, rev int64) *Book {
	b := &Book{Rev: rev, names: map[Name]map[string]Entry{}}
	for _, e := range entries {
		b.Put(e)
	}
	return b
}

// Put takes a key in, and says which name it is about. ok is false where that is none of those that are looked at.
func (b *Book) Put(e Entry) (n Name, ok bool) {
	if n, ok = NameOf(e.Key); !ok {
		return n, false
	}
	if b.names[n] == nil {
		b.names[n] = map[string]Entry{}
	}
	b.names[n][e.Key] = e
	return n, true
}

// Delete takes a key out, and says what it was about, as Put does.
func (b *Book) Delete(key string) (n Name, ok bool) {
	if n, ok = NameOf(key); !ok {
		return n, false
	}
	if delete(b.names[n], key); len(b.names[n]) == 0 {
		delete(b.names, n)
	}
	return n, true
}

// Standing is how a name stands. One that is in no key is vacant.
func (b *Book) Standing(n Name) Standing {
	return Stand(n, slices.Collect(maps.Values(b.names[n])), b.Rev)
}

// Names are those that there is a key of, in order.
func (b *Book) Names() []Name { return slices.SortedFunc(maps.Keys(b.names), Name.Compare) }

// Standings are how all names stand that there is a key of, in order; the keys that have none come first.
func (b *Book) Standings() (all []Standing) {
	for _, n := range b.Names() {
		all = append(all, b.Standing(n))
	}
	return all
}

// Compare orders names by kind, and then by name.
func (n Name) Compare(o Name) int {
	return cmp.Or(strings.Compare(n.Kind, o.Kind), strings.Compare(n.Name, o.Name))
}
