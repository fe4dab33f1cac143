package coordtest

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Method names a kind of call, for rules and counters.
type Method string

// The methods. A client's Get is a Range; every renewal on a KeepAlive stream and every watch created on a
// Watch stream is a call of its own.
const (
	Range      Method = "Range"
	Put        Method = "Put"
	Delete     Method = "Delete"
	Txn        Method = "Txn"
	Compact    Method = "Compact"
	Grant      Method = "Grant"
	Revoke     Method = "Revoke"
	KeepAlive  Method = "KeepAlive"
	TimeToLive Method = "TimeToLive"
	Leases     Method = "Leases"
	Watch      Method = "Watch"
	Status     Method = "Status"
	MemberList Method = "MemberList"
)

// Forever is the Times of a rule that never wears out.
const Forever = -1

// Rule says which calls are to meet which fault.
type Rule struct {
	// Method picks the calls. Empty: all.
	Method Method
	// When picks among them. It must not block, nor call the Medium. Nil: all.
	When func(*Call) bool
	// Skip is how many of the calls picked pass before the rule applies.
	Skip int
	// Times is how many calls the rule is applied to; Forever for no end. Default 1.
	Times int
	// Action is what happens to them. Nil: nothing; they are counted in Hits.
	Action Action
}

// Fault is a rule in force.
type Fault struct {
	rules   *rules
	rule    Rule
	skipped int
	hits    int
	removed bool
}

// Hits is how many calls the rule was applied to. A call counts before its action begins.
func (f *Fault) Hits() int {
	f.rules.mu.Lock()
	defer f.rules.mu.Unlock()
	return f.hits
}

// Remove takes the rule out of force. Calls that it holds back stay where they are.
func (f *Fault) Remove() {
	f.rules.mu.Lock()
	defer f.rules.mu.Unlock()
	f.removed = true
}

// matches judges and counts. The lock of the rules is held.
func (f *Fault) matches(c *Call) bool {
	switch r := &f.rule; {
	case f.removed, r.Times != Forever && f.hits >= r.Times:
		return false
	case r.Method != "" && r.Method != c.Method, r.When != nil && !r.When(c):
		return false
	case f.skipped < r.Skip:
		f.skipped++
		return false
	}
	f.hits++
	return true
}

// Call is one request that has reached a member.
type Call struct {
	// Context ends when the caller gives up, or its stream ends, or the Medium is closed.
	Context context.Context
	// Method is what is asked for.
	Method Method
	// Member is the index of the member that was asked.
	Member int
	// Request is what came over the wire, an etcdserverpb message. It must not be changed.
	Request proto.Message

	door   *member
	commit func(context.Context) (proto.Message, error)
}

// Commit does what is asked for and returns the reply. It waits for a quorum, if it needs one, as long as
// ctx lasts. Nothing keeps an Action from calling it twice.
func (c *Call) Commit(ctx context.Context) (proto.Message, error) { return c.commit(ctx) }

// rules are the faults in force, and the counters.
type rules struct {
	mu     sync.Mutex
	faults []*Fault
	calls  map[Method]int
	news   chan struct{} // closed and replaced when a call arrives
}

func (rs *rules) init() {
	rs.calls = make(map[Method]int)
	rs.news = make(chan struct{})
}

func (rs *rules) changed() <-chan struct{} {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.news
}

// arrive counts a call and finds what is to happen to it; nil if nothing.
func (rs *rules) arrive(c *Call) Action {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.calls[c.Method]++
	close(rs.news)
	rs.news = make(chan struct{})
	for _, f := range rs.faults {
		if f.matches(c) {
			return f.rule.Action
		}
	}
	return nil
}

// Inject puts a rule in force, behind those that are.
func (m *Medium) Inject(r Rule) *Fault {
	if r.Times == 0 {
		r.Times = 1
	}
	f := &Fault{rules: &m.rules, rule: r}
	m.rules.mu.Lock()
	defer m.rules.mu.Unlock()
	m.rules.faults = append(m.rules.faults, f)
	return f
}

// Heal removes all rules. It does not undo Stop, Kill, NoQuorum or NoSpace.
func (m *Medium) Heal() {
	m.rules.mu.Lock()
	defer m.rules.mu.Unlock()
	for _, f := range m.rules.faults {
		f.removed = true
	}
	m.rules.faults = nil
}

// Calls is how many calls of a method have reached any member, whatever became of them. Retries by the
// client count.
func (m *Medium) Calls(method Method) int {
	m.rules.mu.Lock()
	defer m.rules.mu.Unlock()
	return m.rules.calls[method]
}

// ResetCalls sets all counters to zero.
func (m *Medium) ResetCalls() {
	m.rules.mu.Lock()
	defer m.rules.mu.Unlock()
	clear(m.rules.calls)
}

// serve takes one call through the rules to its commit.
func serve[R proto.Message](mb *member, ctx context.Context, method Method, req proto.Message, commit func(context.Context) (R, error)) (R, error) {
	c := &Call{Context: ctx, Method: method, Member: mb.index, Request: req, door: mb}
	c.commit = func(ctx context.Context) (proto.Message, error) {
		reply, err := commit(ctx)
		if err != nil {
			return nil, err
		}
		return reply, nil
	}
	var none R
	action := mb.m.rules.arrive(c)
	if action == nil {
		return commit(ctx)
	}
	reply, err := action(c)
	if err != nil {
		return none, err
	}
	r, ok := reply.(R)
	if !ok {
		return none, status.Errorf(codes.Internal, "coordtest: action replied to %s with %T", method, reply)
	}
	return r, nil
}
