package redislock

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-coord/coord/coordination"
	"github.com/go-coord/coord/internal/redistest"
)

// scripted is a fake that answers in turn, and notes what it was asked.
type scripted struct {
	mu       sync.Mutex
	answers  []string
	commands [][]string
}

func (s *scripted) answer(command []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, command)
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return answer
}

func script(t *testing.T, answers ...string) (*scripted, *Locker) {
	s := &scripted{answers: answers}
	return s, New((&fake{s.answer}).client(t), Options{Prefix: "p:"})
}

func TestWhatIsSentAndWhatTheAnswersMean(t *testing.T) {
	t.Parallel()
	s, l := script(t, bulk("7"), "$-1\r\n", ":1\r\n", ":0\r\n", ":1\r\n", ":0\r\n")
	ctx := t.Context()
	began := time.Now()
	lease, held, err := l.Acquire(ctx, "a/{b}", "me", 1500*time.Microsecond)
	if err != nil || !held || lease.Token != 7 || lease.Key != "a/{b}" || lease.Owner != "me" {
		t.Fatal(lease, held, err)
	}
	if got := lease.ExpiresAt.Sub(began); got < 1350*time.Microsecond || lease.ExpiresAt.After(time.Now().Add(1350*time.Microsecond)) {
		t.Errorf("expires %v after the call", got)
	}
	if other, held, err := l.Acquire(ctx, "k", "me", time.Second); err != nil || held || other != (coordination.Lease{}) {
		t.Error(other, held, err)
	}
	next, held, err := l.Renew(ctx, lease, time.Minute)
	if err != nil || !held || next.Token != 7 || next.Remaining() > 54*time.Second || next.Remaining() < 50*time.Second {
		t.Error(next, held, err)
	}
	if other, held, err := l.Renew(ctx, lease, time.Minute); err != nil || held || other != (coordination.Lease{}) {
		t.Error(other, held, err)
	}
	for range 2 {
		if err := l.Release(ctx, lease); err != nil {
			t.Error(err)
		}
	}
	// One script a call; the keys share a hash tag.
	for i, want := range [][]string{
		{"2", "p:{a%2F%7Bb%7D}", "p:{a%2F%7Bb%7D}:token", "", "me", "2"}, {"2", "p:{k}", "p:{k}:token", "", "me", "1000"},
		{"1", "p:{a%2F%7Bb%7D}", "7", "60000"}, {"1", "p:{a%2F%7Bb%7D}", "7", "60000"}, {"1", "p:{a%2F%7Bb%7D}", "7"}, {"1", "p:{a%2F%7Bb%7D}", "7"},
	} {
		got := slices.Clone(s.commands[i][2:])
		if len(want) == 6 {
			if len(got[3]) < 20 || i > 0 && got[3] == s.commands[i-1][5] {
				t.Errorf("a nonce %q", got[3])
			}
			got[3] = ""
		}
		if strings.ToLower(s.commands[i][0]) != "evalsha" || !slices.Equal(got, want) {
			t.Errorf("%d: %q, want %q", i, got, want)
		}
	}
	if len(s.commands) != 6 {
		t.Errorf("%d commands", len(s.commands))
	}
}

func TestAnAnswerThatMakesNoSenseIsAnError(t *testing.T) {
	t.Parallel()
	lease := coordination.Lease{Key: "k", Owner: "o", Token: 7}
	for _, answer := range []string{bulk(""), bulk("0"), bulk("-1"), bulk("x"), bulk("18446744073709551616"), ":7\r\n", "*0\r\n", "-ERR no\r\n", "-WRONGTYPE no\r\n"} {
		_, l := script(t, answer)
		if got, held, err := l.Acquire(t.Context(), "k", "o", time.Second); err == nil || held || got != (coordination.Lease{}) || !strings.HasPrefix(err.Error(), `acquire "k": `) {
			t.Errorf("acquire, %q: %v, %v, %v", answer, got, held, err)
		}
	}
	for _, answer := range []string{":2\r\n", ":-1\r\n", bulk("1"), "$-1\r\n", "-ERR no\r\n"} {
		_, l := script(t, answer, answer)
		if got, held, err := l.Renew(t.Context(), lease, time.Second); err == nil || held || got != (coordination.Lease{}) || !strings.HasPrefix(err.Error(), `renew "k": `) {
			t.Errorf("renew, %q: %v, %v, %v", answer, got, held, err)
		}
		if err := l.Release(t.Context(), lease); err == nil || !strings.HasPrefix(err.Error(), `release "k": `) {
			t.Errorf("release, %q: %v", answer, err)
		}
	}
}

func TestWhatMakesNoSenseIsNotSent(t *testing.T) {
	t.Parallel()
	_, l := script(t)
	if _, _, err := l.Acquire(t.Context(), "k", "o", 0); !errors.Is(err, coordination.ErrInvalidLease) {
		t.Error(err)
	}
	if _, _, err := l.Renew(t.Context(), coordination.Lease{}, time.Second); !errors.Is(err, coordination.ErrInvalidLease) {
		t.Error(err)
	}
	if err := l.Release(t.Context(), coordination.Lease{}); !errors.Is(err, coordination.ErrInvalidLease) {
		t.Error(err)
	}
}

func TestACallerWhoHasGoneAsksNobodyButToRelease(t *testing.T) {
	t.Parallel()
	s, l := script(t, ":1\r\n")
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	lease := coordination.Lease{Key: "k", Owner: "o", Token: 7}
	if _, held, err := l.Acquire(ctx, "k", "o", time.Second); held || !errors.Is(err, gone) {
		t.Error(held, err)
	}
	if _, held, err := l.Renew(ctx, lease, time.Second); held || !errors.Is(err, gone) {
		t.Error(held, err)
	}
	if err := l.Release(ctx, lease); err != nil || len(s.commands) != 1 {
		t.Errorf("%v, %q", err, s.commands)
	}
}

// A client that looks at no context goes on in the background: what it is granted then is given back.
func TestWhatIsAnsweredAfterTheCallerHasGoneIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		call    func(context.Context, *Locker) error
		answer  string
		undoing []string
	}{
		"granted": {func(ctx context.Context, l *Locker) error {
			_, _, err := l.Acquire(ctx, "k", "o", time.Second)
			return err
		}, bulk("7"), []string{"1", "p:{k}", "7"}},
		"refused": {func(ctx context.Context, l *Locker) error {
			_, _, err := l.Acquire(ctx, "k", "o", time.Second)
			return err
		}, "$-1\r\n", nil},
		"granted, if that is a token": {func(ctx context.Context, l *Locker) error {
			_, _, err := l.Acquire(ctx, "k", "o", time.Second)
			return err
		}, bulk("x"), nil},
		"renewed": {func(ctx context.Context, l *Locker) error {
			_, _, err := l.Renew(ctx, coordination.Lease{Key: "k", Owner: "o", Token: 7}, time.Second)
			return err
		}, ":1\r\n", nil},
		"released": {func(ctx context.Context, l *Locker) error {
			return l.Release(ctx, coordination.Lease{Key: "k", Owner: "o", Token: 7})
		}, ":1\r\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			asked, left := make(chan struct{}), make(chan struct{})
			undone := make(chan []string, 1)
			first := true
			l := New((&fake{func(command []string) string {
				if first {
					first = false
					close(asked)
					<-left // its caller
					return row.answer
				}
				undone <- command[2:]
				return ":1\r\n"
			}}).client(t), Options{Prefix: "p:"})
			go func() {
				<-asked
				cancel()
			}()
			if err := row.call(ctx, l); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			close(left)
			if row.undoing == nil {
				return // a second command would find the channel full, or none
			}
			select {
			case got := <-undone:
				if !slices.Equal(got, row.undoing) {
					t.Errorf("%q, want %q", got, row.undoing)
				}
			case <-time.After(time.Minute):
				t.Error("it is not given back")
			}
		})
	}
}

func TestATTLIsRoundedUpToMilliseconds(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]int64{
		1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000, math.MaxInt64: 9223372036855,
	} {
		if got := milliseconds(ttl); got != want {
			t.Errorf("%v: %d, want %d", ttl, got, want)
		}
	}
	if at := expiresAt(math.MaxInt64); !at.After(time.Now().AddDate(200, 0, 0)) {
		t.Error(at)
	}
}

// What stands in Redis: see the package comment.
func TestWhatStandsInRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	c := s.Client(t)
	l, ctx := New(c, Options{}), t.Context()
	clock, err := c.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	lease, held, err := l.Acquire(ctx, "a/b", "me: myself", time.Minute)
	if !held || err != nil {
		t.Fatal(held, err)
	}
	keys, err := c.Keys(ctx, "*").Result()
	slices.Sort(keys)
	if want := []string{"coord:locks:{a%2Fb}", "coord:locks:{a%2Fb}:token"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("%q, %v", keys, err)
	}
	value, err := c.Get(ctx, "coord:locks:{a%2Fb}").Result()
	parts := strings.SplitN(value, ":", 3)
	if n, _ := token(parts[0]); err != nil || n != lease.Token || parts[2] != "me: myself" {
		t.Errorf("%q, %v", value, err)
	}
	if left, err := c.PTTL(ctx, "coord:locks:{a%2Fb}").Result(); err != nil || left > time.Minute || left < lease.Remaining() {
		t.Errorf("it lasts for %v, the lease for %v: %v", left, lease.Remaining(), err)
	}
	if left, err := c.PTTL(ctx, "coord:locks:{a%2Fb}:token").Result(); err != nil || left != -1 {
		t.Errorf("the counter lasts for %v: %v", left, err)
	}
	// The time in microseconds, where no counter says more.
	if lease.Token < uint64(clock.UnixMicro()) {
		t.Errorf("token %d at %d", lease.Token, clock.UnixMicro())
	}
	if err := l.Release(ctx, lease); err != nil {
		t.Error(err)
	}
	if n, err := c.Exists(ctx, "coord:locks:{a%2Fb}").Result(); n != 0 || err != nil {
		t.Error(n, err)
	}
}

func TestTokensRiseWhateverBecomesOfTheirCounter(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	c := s.Client(t)
	l, ctx := New(c, Options{}), t.Context()
	var last uint64
	grant := func(why string) {
		lease, held, err := l.Acquire(ctx, "k", "o", time.Minute)
		if !held || err != nil || lease.Token <= last {
			t.Fatalf("%s: %+v after %d, %v, %v", why, lease, last, held, err)
		}
		last = lease.Token
		if err := l.Release(ctx, lease); err != nil {
			t.Fatal(err)
		}
	}
	grant("first")
	grant("second")
	if err := c.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	grant("all is gone")
	s.Restart() // nothing was saved, the scripts neither
	grant("another server")
	// A counter that is ahead of the clock, as after a clock that was set back, goes on by one.
	ahead := "8000000000000000"
	if err := c.Set(ctx, "coord:locks:{k}:token", ahead, 0).Err(); err != nil {
		t.Fatal(err)
	}
	last = 8000000000000000
	grant("ahead")
	if last != 8000000000000001 {
		t.Errorf("token %d", last)
	}
	// One that cannot be counted is an error, and grants nothing.
	for _, broken := range []string{"9007199254740991", "9223372036854775807", "x", ""} {
		if err := c.Set(ctx, "coord:locks:{k}:token", broken, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if lease, held, err := l.Acquire(ctx, "k", "o", time.Minute); held || err == nil {
			t.Errorf("counter %q: %+v, %v, %v", broken, lease, held, err)
		}
		if n, err := c.Exists(ctx, "coord:locks:{k}").Result(); n != 0 || err != nil {
			t.Errorf("counter %q: locked, %v", broken, err)
		}
	}
}

// What is somebody else's, of another type or without an end, is not ours to take.
func TestAKeyThatIsNoLockIsHeld(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	c := s.Client(t)
	l, ctx := New(c, Options{}), t.Context()
	for _, value := range []string{"", "x", "7", "7:", "7:nonce", ":::", "\x00"} {
		if err := c.Set(ctx, "coord:locks:{k}", value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if _, held, err := l.Acquire(ctx, "k", "o", time.Minute); held || err != nil {
			t.Errorf("%q: %v, %v", value, held, err)
		}
	}
	// One without an end has one again when it is renewed.
	lease := coordination.Lease{Key: "k", Owner: "o", Token: 7}
	if err := c.Set(ctx, "coord:locks:{k}", "7:nonce:o", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if _, held, err := l.Renew(ctx, lease, time.Minute); !held || err != nil {
		t.Error(held, err)
	}
	if left, err := c.PTTL(ctx, "coord:locks:{k}").Result(); err != nil || left <= 0 {
		t.Error(left, err)
	}
	if err := c.Del(ctx, "coord:locks:{k}").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.LPush(ctx, "coord:locks:{k}", "x").Err(); err != nil {
		t.Fatal(err)
	}
	if _, held, err := l.Acquire(ctx, "k", "o", time.Minute); held || err == nil {
		t.Error(held, err)
	}
	if _, held, err := l.Renew(ctx, lease, time.Minute); held || err == nil {
		t.Error(held, err)
	}
	if err := l.Release(ctx, lease); err == nil {
		t.Error("released a list")
	}
}

// A server that keeps what it acknowledged keeps locks over kill -9.
func TestALockOutlivesAServerThatLosesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Durable: true})
	l, ctx := New(s.Client(t, retries), Options{}), t.Context()
	lease, held, err := l.Acquire(ctx, "k", "o", time.Hour)
	if !held || err != nil {
		t.Fatal(held, err)
	}
	s.Restart()
	if _, held, err := l.Acquire(ctx, "k", "p", time.Hour); held || err != nil {
		t.Error(held, err)
	}
	if lease, held, err = l.Renew(ctx, lease, time.Hour); !held || err != nil {
		t.Error(held, err)
	}
	if err := l.Release(ctx, lease); err != nil {
		t.Error(err)
	}
	if next, held, err := l.Acquire(ctx, "k", "p", time.Hour); !held || err != nil || next.Token <= lease.Token {
		t.Error(next, held, err)
	}
}

// Where a client looks at no context, as it does by default, the call ends with it all the same.
func TestAContextBoundsTheCallsOfAnyClient(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	l := New(s.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled, o.MaxRetries = false, 3 }), Options{})
	lease, held, err := l.Acquire(t.Context(), "k", "o", time.Hour)
	if !held || err != nil {
		t.Fatal(held, err)
	}
	s.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, held, err := l.Acquire(ctx, "other", "o", time.Hour); held || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(held, err)
	}
	s.Cont()
	// What was sent is carried out, and given back: the key is free long before its ttl.
	for {
		other, held, err := l.Acquire(t.Context(), "other", "p", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if held {
			_ = l.Release(t.Context(), other)
			break
		}
		time.Sleep(time.Millisecond) // nobody tells when that is done
	}
	if err := l.Release(t.Context(), lease); err != nil {
		t.Error(err)
	}
}

// A cluster runs a script where its keys lie: on one node, by the hash tag, which is what the first brace opens.
func TestTheKeysOfALockShareAHashTag(t *testing.T) {
	t.Parallel()
	l := New(nil, Options{})
	tags := map[string]string{}
	for _, key := range []string{"k", "a/b", "{", "}", "{}", "{a}b", "}{", ":token", "\x00", "é", " "} {
		_, rest, _ := strings.Cut(l.name(key), "{")
		tag, end, ok := strings.Cut(rest, "}")
		if !ok || tag == "" || end != "" {
			t.Errorf("%q: %q has no hash tag of its own", key, l.name(key))
		}
		if other, twice := tags[tag]; twice {
			t.Errorf("%q and %q share %q", key, other, tag)
		}
		tags[tag] = key
	}
}
