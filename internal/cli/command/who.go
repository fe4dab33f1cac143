package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/cli"
	"github.com/go-coord/coord/internal/hold"
)

// States of a seat.
const (
	stateHeld     = "held"
	stateSettling = "settling" // first in the queue, and waiting for the end of an earlier hold
	stateFenced   = "fenced"   // on-lose failed under --fence-on-lose: nobody is at work, and the lease runs out
	stateWaiting  = "waiting"
	stateVacant   = "vacant" // nobody's: the line stands for the office
)

// seat is one line of the answer to --who and --watch: a holder, somebody who waits, or nobody.
type seat struct {
	Kind      string    `json:"kind"`
	Name      string    `json:"name"`
	Max       *int      `json:"max"`  // of a semaphore; null
	Slot      *int      `json:"slot"` // of a semaphore; null
	State     string    `json:"state"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Started   string    `json:"started"`
	Cmd       string    `json:"cmd"`
	Rev       uint64    `json:"rev"`
	Lease     string    `json:"lease"`
	TTLLeft   int64     `json:"ttl_left_ms"`         // -1: not known
	Position  int       `json:"position"`            // in the queue: 0 leads
	Unsettled *wireOpen `json:"unsettled,omitempty"` // the earlier hold that it, or the next holder, waits for
	Value     string    `json:"value,omitempty"`     // of a key that is no holder of ours, escaped
	At        string    `json:"at,omitempty"`        // --watch: when it was seen
	Last      *wireLast `json:"last,omitempty"`      // --watch, vacant: how the last hold ended
}

// standing is all that is known about an office.
type standing struct {
	seats     []seat
	unsettled *openHold // the open record of a hold that is not the first seat's; nil: none
	last      *lastHold // how the last hold ended; nil: not known
}

// tellWho prints who leads the office and who waits for it. The reads are linearizable: where etcd cannot
// vouch for an answer there is none.
func (c *call) tellWho(ctx context.Context, f *electFlags, name string) (int, error) {
	client, err := c.connect(ctx, &f.Connection)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var s standing
	err = f.Reach(ctx, client, func(ctx context.Context) error {
		s, err = look(ctx, client, name)
		return err
	})
	if err != nil {
		return 0, lacking(client, f.Settings, lookNeeds(name), err)
	}

	var out bytes.Buffer
	if f.output.JSON() {
		printJSON(&out, name, s)
	} else {
		printTable(&out, name, s)
	}
	return answer(len(s.seats) > 0), cli.Print(c.env.Stdout, out.Bytes())
}

// look reads the queue with the record beside it, what the leases have left, and how the last hold ended.
func look(ctx context.Context, client *clientv3.Client, name string) (standing, error) {
	queue, open, err := readOffice(ctx, client, name)
	if err != nil {
		return standing{}, err
	}
	var s standing
	if open != nil && (len(queue) == 0 || !open.of(name, queue[0])) {
		s.unsettled = open
	}
	for i, candidate := range queue {
		one := seatOf(name, i, candidate, s.unsettled)
		one.TTLLeft = ttlLeft(ctx, client, candidate.Lease)
		s.seats = append(s.seats, one)
	}
	_, last := hold.OfficeKeys(name)
	end, found, err := coord.LastEnd(ctx, client, coord.SettleOptions{Last: last.String()})
	if err != nil {
		return standing{}, err
	}
	if found {
		s.last = ofEnd(end)
	}
	return s, nil
}

// readOffice reads the queue of an office, in order, and its open record (nil: none), in one linearizable step:
// a hold that begins in between would look like one that did not end.
func readOffice(ctx context.Context, client *clientv3.Client, name string) ([]coord.Candidate, *openHold, error) {
	open, _ := hold.OfficeKeys(name)
	got, err := client.Txn(ctx).Then(
		clientv3.OpGet(hold.ElectRange(name), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
		clientv3.OpGet(open.String()),
	).Commit()
	if err != nil {
		return nil, nil, fmt.Errorf("read office %s: %w", name, err)
	}
	var queue []coord.Candidate
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		if strings.Contains(string(kv.Key[len(hold.ElectRange(name)):]), "/") {
			return nil, nil, fmt.Errorf("%w: %q", coord.ErrNestedKey, kv.Key)
		}
		queue = append(queue, coord.CandidateOf(kv))
	}
	var record *openHold
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		record = readOpen(kv)
	}
	return queue, record, nil
}

// seatOf is a place in the queue. unsettled is what the first one waits for; nil: it leads.
func seatOf(name string, position int, c coord.Candidate, unsettled *openHold) seat {
	s := seat{
		Kind: hold.KindElect, Name: name, State: stateWaiting, Position: position,
		Rev: c.Token, Lease: hold.FormatLease(int64(c.Lease)),
	}
	h, ours := hold.DecodeHolder([]byte(c.Identity))
	switch {
	case position > 0:
	case unsettled != nil:
		s.State, s.Unsettled = stateSettling, unsettled.wire()
	case h.Fenced:
		s.State = stateFenced
	default:
		s.State = stateHeld
	}
	if !ours {
		s.Value = h.String()
		return s
	}
	s.Host, s.PID, s.Cmd, s.Started = h.Host, h.PID, h.Cmd, h.Started.Format(time.RFC3339)
	return s
}

// ttlLeft is what a lease has left, in milliseconds; etcd tells whole seconds. It is for people: a key
// without a lease, or an answer that does not come, is "not known".
func ttlLeft(ctx context.Context, client *clientv3.Client, lease clientv3.LeaseID) int64 {
	got, err := client.TimeToLive(ctx, lease)
	if err != nil || got.TTL < 0 {
		return -1
	}
	return got.TTL * 1000
}

// printJSON prints one object a line. A vacancy is no line, but where the next holder would settle.
func printJSON(w io.Writer, name string, s standing) {
	if len(s.seats) == 0 && s.unsettled != nil {
		s.seats = []seat{{Kind: hold.KindElect, Name: name, State: stateVacant, TTLLeft: -1, Unsettled: s.unsettled.wire()}}
	}
	for _, one := range s.seats {
		_, _ = w.Write(cli.JSONLine(one)) // into memory
	}
}

func printTable(w io.Writer, name string, s standing) {
	if s.unsettled != nil {
		defer fmt.Fprint(w, s.unsettled.text())
	}
	if len(s.seats) == 0 {
		fmt.Fprintf(w, "%s is vacant%s\n", name, s.last.text())
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "POSITION\tSTATE\tHOST\tPID\tSTARTED\tREV\tLEASE\tTTL LEFT\tCMD")
	for _, one := range s.seats {
		left := "?"
		if one.TTLLeft >= 0 {
			left = (time.Duration(one.TTLLeft) * time.Millisecond).String()
		}
		cmd := hold.Escape(one.Cmd)
		if one.Value != "" {
			cmd = one.Value // escaped already
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", one.Position, one.State, dash(hold.Escape(one.Host)),
			dash(number(one.PID)), dash(one.Started), one.Rev, one.Lease, left, dash(cmd))
	}
	_ = t.Flush()
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
