package redislock

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// fake is a Redis that answers scripts with what a test says, over connections in memory: for what a sound one never
// says, and for machines without one.
type fake struct {
	// answer is what a script is answered with, in the words of the protocol; "" is none, for ever.
	answer func(command []string) string
}

func (f *fake) client(t *testing.T) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: "fake", MaxRetries: -1, Protocol: 2, DisableIdentity: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go f.serve(server)
			return client, nil
		},
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// serve answers one connection until that ends.
func (f *fake) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		command, err := read(in)
		if err != nil {
			return
		}
		answer := "-ERR unknown command\r\n"
		if name := strings.ToLower(command[0]); name == "evalsha" || name == "eval" {
			answer = f.answer(command)
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// read reads a command: an array of strings.
func read(in *bufio.Reader) (command []string, err error) {
	number := func(kind byte) (n int) {
		line, lineErr := in.ReadString('\n')
		if lineErr != nil || line[0] != kind {
			err = fmt.Errorf("%q: %v", line, lineErr)
			return 0
		}
		n, err = strconv.Atoi(strings.TrimSpace(line[1:]))
		return n
	}
	for range number('*') {
		text := make([]byte, number('$')+2)
		if err != nil {
			return nil, err
		}
		if _, err = io.ReadFull(in, text); err != nil {
			return nil, err
		}
		command = append(command, string(text[:len(text)-2]))
	}
	return command, err
}

// bulk is a string in the words of the protocol.
func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }
