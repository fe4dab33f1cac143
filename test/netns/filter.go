package netns

import (
	"fmt"
	"strconv"
	"strings"
)

// Rules for Filter, of nft(8).
const (
	Accept = "accept"
	Drop   = "counter drop"
	// Lossy drops every fifth packet.
	Lossy = "numgen inc mod 5 0 counter drop"
	// Reset resets a connection at every fiftieth packet that is no handshake: who is reset in each handshake is cut off, and that is
	// another fault.
	Reset = "tcp flags & (syn | fin | rst) == 0 numgen inc mod 50 0 counter reject with tcp reset"
)

// Filter has the packets of a namespace meet rules, as they come in and go out, until Unfilter. The name tells filters apart, which
// may be there together: a packet passes if it passes all of them.
func (ns *Namespace) Filter(name, in, out string) error {
	if _, err := Program("nft", "nftables"); err != nil {
		return err
	}
	_, err := ns.feed(fmt.Sprintf("table inet %s {\nchain in { type filter hook input priority 0; %s; }\n"+
		"chain out { type filter hook output priority 0; %s; }\n}\n", name, in, out), "nft", "-f", "-")
	return err
}

// Unfilter ends a filter.
func (ns *Namespace) Unfilter(name string) error {
	_, err := ns.Do("nft", "delete", "table", "inet", name)
	return err
}

// Hits is how many packets have met the rules of a filter that count.
func (ns *Namespace) Hits(name string) (hits int, err error) {
	text, err := ns.Do("nft", "list", "table", "inet", name)
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(text, "counter packets ")
	for found {
		word, more, _ := strings.Cut(rest, " ")
		count, err := strconv.Atoi(word)
		if err != nil {
			return 0, fmt.Errorf("read filter: %w", err)
		}
		hits += count
		_, rest, found = strings.Cut(more, "counter packets ")
	}
	return hits, nil
}
