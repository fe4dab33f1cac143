package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord"
	"github.com/go-coord/coord/internal/hold"
)

// seat is one line of the answer to --who: a holder, or somebody who waits.
type seat struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Max      *int   `json:"max"`  // of a semaphore; null
	Slot     *int   `json:"slot"` // of a semaphore; null
	State    string `json:"state"`
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	Started  string `json:"started"`
	Cmd      string `json:"cmd"`
	Rev      uint64 `json:"rev"`
	Lease    string `json:"lease"`
	TTLLeft  int64  `json:"ttl_left_ms"`        // -1: not known
	Position int    `json:"position"`           // in the queue: 0 leads
	Settling bool   `json:"settling,omitempty"` // first, and waiting for the end of an earlier hold
	Value    string `json:"value,omitempty"`    // of a key that is no holder of ours, escaped
}

// standing is all that is known about an office.
type standing struct {
	seats []seat
	ended *coord.Ended // how the last hold ended; nil: not known
}

// tellWho prints who leads the office and who waits for it. The reads are linearizable: where etcd cannot
// vouch for an answer there is none.
func (c *call) tellWho(ctx context.Context, f *electFlags, name string) (int, error) {
	if err := f.Discover(ctx, c.env); err != nil {
		return 0, err
	}
	client, err := f.Client()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", hold.ErrUnreachable, err)
	}
	defer client.Close()
	var s standing
	err = f.Reach(ctx, client, func(ctx context.Context) error {
		s, err = look(ctx, client, name)
		return err
	})
	if err != nil {
		return 0, lacking(client, f.User, lookNeeds(name), err)
	}

	// All at once: half a table is worse than none.
	var out bytes.Buffer
	if f.output == "json" {
		printJSON(&out, s)
	} else {
		printTable(&out, name, s)
	}
	if _, err := c.env.Stdout.Write(out.Bytes()); err != nil {
		return 0, fmt.Errorf("print: %w", err)
	}
	return answer(len(s.seats) > 0), nil
}

// look reads the queue, the records beside it, and what the leases have left.
func look(ctx context.Context, client *clientv3.Client, name string) (standing, error) {
	queue, err := coord.ListCandidates(ctx, client, hold.ElectPrefix(name))
	if err != nil {
		return standing{}, err
	}
	open, last := hold.OfficeKeys(name)
	record, err := client.Get(ctx, open.String())
	if err != nil {
		return standing{}, fmt.Errorf("read open record: %w", err)
	}
	var s standing
	for i, candidate := range queue {
		one := seatOf(name, i, candidate)
		one.TTLLeft = ttlLeft(ctx, client, candidate.Lease)
		one.Settling = i == 0 && len(record.Kvs) > 0 && leaseOf(record.Kvs[0].Value) != int64(candidate.Lease)
		s.seats = append(s.seats, one)
	}
	end, found, err := coord.LastEnd(ctx, client, coord.SettleOptions{Open: open.String(), Last: last.String()})
	if err != nil {
		return standing{}, err
	}
	if found {
		s.ended = &end
	}
	return s, nil
}

func seatOf(name string, position int, c coord.Candidate) seat {
	s := seat{
		Kind: hold.KindElect, Name: name, State: "waiting", Position: position,
		Rev: c.Token, Lease: hold.FormatLease(int64(c.Lease)),
	}
	if position == 0 {
		s.State = "held"
	}
	h, ours := hold.DecodeHolder([]byte(c.Identity))
	if !ours {
		s.Value = h.String()
		return s
	}
	s.Host, s.PID, s.Cmd, s.Started = h.Host, h.PID, h.Cmd, h.Started.Format(time.RFC3339)
	return s
}

// leaseOf is the lease that an open record is about; 0 where it cannot be read.
func leaseOf(record []byte) int64 {
	var r struct {
		Lease string `json:"lease"`
	}
	if json.Unmarshal(record, &r) != nil {
		return 0
	}
	lease, _ := hold.ParseLease(r.Lease)
	return lease
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

func printJSON(w io.Writer, s standing) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, one := range s.seats {
		_ = enc.Encode(one) // into memory, of types that encode
	}
}

func printTable(w io.Writer, name string, s standing) {
	if len(s.seats) == 0 {
		fmt.Fprintf(w, "%s is vacant%s\n", name, lastEnd(s.ended))
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "POSITION\tSTATE\tHOST\tPID\tSTARTED\tREV\tLEASE\tTTL LEFT\tCMD")
	for _, one := range s.seats {
		left := "?"
		if one.TTLLeft >= 0 {
			left = (time.Duration(one.TTLLeft) * time.Millisecond).String()
		}
		cmd, state := one.Cmd, one.State
		if one.Value != "" {
			cmd = one.Value // escaped already
		} else {
			cmd = hold.Escape(cmd)
		}
		if one.Settling {
			state = "settling"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", one.Position, state, dash(hold.Escape(one.Host)),
			dash(number(one.PID)), dash(one.Started), one.Rev, one.Lease, left, dash(cmd))
	}
	_ = t.Flush()
}

// lastEnd says how the last hold ended.
func lastEnd(e *coord.Ended) string {
	if e == nil {
		return ""
	}
	h, _ := hold.DecodeHolder([]byte(e.Holder))
	return fmt.Sprintf("; last held by %s, token %d, %s %s", h, e.Token, hold.EscapeCut(string(e.How), 20), e.At.Format(time.RFC3339))
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
