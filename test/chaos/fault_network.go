//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-coord/coord/test/netns"
)

// networkFaults are those of a host: what its parts hear of etcd, and etcd of them.
func networkFaults() []kind {
	const s = time.Second
	fault := func(name string, rows []int, least, most time.Duration, in, out string) kind {
		return kind{name: name, rows: rows, lane: laneNetwork, least: least, most: most, netns: true, inject: rule{in, out}.inject}
	}
	linked := func(name string, rows []int, least, most time.Duration, do, undo func(netns.Link) error) kind {
		return kind{name: name, rows: rows, lane: laneNetwork, least: least, most: most, netns: true, inject: turn{do, undo}.inject}
	}
	return []kind{
		fault("cut-host", []int{14}, s, 9*s, netns.Drop, netns.Drop),
		fault("cut-answers", []int{15}, s, 9*s, netns.Drop, netns.Accept),
		fault("cut-requests", []int{14}, s, 9*s, netns.Accept, netns.Drop),
		linked("link-down", []int{14}, s, 9*s, netns.Link.Down, netns.Link.Up),
		fault("lose-endpoint", []int{16}, 2*s, 9*s, "ip saddr "+oneMember+" counter drop", "ip daddr "+oneMember+" counter drop"),
		fault("lossy", []int{17}, 3*s, 9*s, netns.Lossy, netns.Lossy),
		fault("resets", []int{20}, 3*s, 9*s, netns.Reset, netns.Reset),
		linked("slow", []int{19}, 3*s, 9*s, func(l netns.Link) error { return l.Slow(64) }, netns.Link.Quick),
	}
}

// oneMember stands for the address of the member that the target chooses.
const oneMember = "MEMBER"

// filterName tells the filters of faults apart.
func filterName(id int) string { return "fault" + strconv.Itoa(id) }

// rule is what the packets of a host meet.
type rule struct{ in, out string }

func (r rule) inject(_ context.Context, s strike) (string, func() error, error) {
	h, m := s.host(), s.target/hosts%members
	target := h.name
	at := strings.NewReplacer(oneMember, memberAddress(m))
	if strings.Contains(r.in, oneMember) {
		target += fmt.Sprintf(" m%d", m)
	}
	heal, err := filtered(h.net, s.id, at.Replace(r.in), at.Replace(r.out))
	return target, heal, err
}

// turn is something that is done to the cable of a host, and undone.
type turn struct{ do, undo func(netns.Link) error }

func (t turn) inject(_ context.Context, s strike) (string, func() error, error) {
	h := s.host()
	if err := t.do(h.link); err != nil {
		return "", nil, err
	}
	return h.name, func() error { return t.undo(h.link) }, nil
}

// host is the one that the target chooses.
func (s strike) host() *host { return s.a.hosts[s.target%hosts] }
