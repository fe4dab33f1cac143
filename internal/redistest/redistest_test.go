package redistest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAServerKeepsWhatItWasToldToKeep(t *testing.T) {
	t.Parallel()
	for _, durable := range []bool{false, true} {
		s := Start(t, Options{Durable: durable})
		c := s.Client(t)
		if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		before := s.Pid()
		s.Restart()
		n, err := s.Client(t).Exists(t.Context(), "k").Result()
		if err != nil || (n == 1) != durable || s.Pid() == before {
			t.Errorf("durable %v: %d, %v", durable, n, err)
		}
	}
}

func TestAServerThatIsStoppedAnswersNobody(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	c := s.Client(t)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("answered")
	}
	s.Cont()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestAnAnswerIsLostAfterTheScriptWasCarriedOut(t *testing.T) {
	t.Parallel()
	s, wire := Start(t, Options{}), &Wire{}
	c := s.Client(t, wire.Over)
	script := redis.NewScript(`return redis.call('INCR', KEYS[1])`)
	wire.LoseReply()
	// The first request is answered with NOSCRIPT: what is lost is the answer to the second.
	if err := script.Run(t.Context(), c, []string{"k"}).Err(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if n, err := script.Run(t.Context(), c, []string{"k"}).Int(); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	wire.Slow(20 * time.Millisecond)
	began := time.Now()
	if n, err := script.Run(t.Context(), c, []string{"k"}).Int(); n != 3 || err != nil || time.Since(began) < 20*time.Millisecond {
		t.Errorf("%d, %v, after %v", n, err, time.Since(began))
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	run, err := start(append(s.args, "--no-such-option", "1"))
	if err != nil {
		t.Fatal(err)
	}
	broken := &Server{t: t, dir: t.TempDir(), run: run}
	if err := broken.ready(); err == nil {
		t.Error("ready")
	} else {
		t.Log(err)
	}
	if _, err := start([]string{"no-such-program"}); !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
