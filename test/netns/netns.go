// Package netns makes networks of a test's own: namespaces with cables between them, and nothing else, whose packets can be
// dropped, reset and slowed down.
//
// # What is not guaranteed
//
// Nobody but root, or a user who may become root of a namespace of its own, gets any. The programs ip, nft, nsenter and unshare do the
// work, and what is missing of them is an error that says what to install. `tc netem` is not in every kernel, so nothing is
// delayed here.
//
// # What is
//
// No other network of the machine is touched: everything lies in namespaces that hang on processes which end with the one that made
// them, whatever ends that. So nothing is left behind, and nothing has to be swept up.
package netns

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Namespace is a network namespace, kept by a process that waits in it for the end of its input: the kernel closes that when
// whoever made the namespace dies.
type Namespace struct {
	keeper *exec.Cmd // nil: the namespace of this process
	input  io.Closer
}

// Here is the namespace that this process is in.
func Here() *Namespace { return &Namespace{} }

// New makes a namespace. Who is not root makes it from one that New made, or becomes root of a user namespace for it.
func New(from *Namespace) (*Namespace, error) {
	unshare, err := Unshare()
	if err != nil {
		return nil, err
	}
	if from.keeper != nil {
		unshare = from.Enter("unshare", "--net")
	}
	keeper := exec.Command(unshare[0], append(unshare[1:], "sh", "-c", "echo up; exec cat")...)
	var says strings.Builder
	keeper.Stderr = &says
	input, err := keeper.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := keeper.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := keeper.Start(); err != nil {
		return nil, err
	}
	ns := &Namespace{keeper, input}
	if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		ns.Close()
		return nil, fmt.Errorf("make network namespace: %w: %s", err, strings.TrimSpace(says.String()))
	}
	if _, err := ns.Do("ip", "link", "set", "lo", "up"); err != nil {
		ns.Close()
		return nil, err
	}
	return ns, nil
}

// Unshare is a command that runs another one, as the same process, in a new namespace.
func Unshare() ([]string, error) {
	path, err := Program("unshare", "util-linux")
	if err != nil {
		return nil, err
	}
	if os.Getuid() == 0 {
		return []string{path, "--net"}, nil
	}
	return []string{path, "--net", "--user", "--map-root-user"}, nil
}

// Close ends the namespace, when nothing else is in it any more.
func (ns *Namespace) Close() {
	if ns.keeper != nil {
		_ = ns.input.Close()
		_ = ns.keeper.Wait() // how it ended is of no interest
	}
}

// Enter is a command that runs another one in there, as the same process.
func (ns *Namespace) Enter(command ...string) []string {
	if ns.keeper == nil {
		return command
	}
	enter := []string{"nsenter", "--target", strconv.Itoa(ns.keeper.Process.Pid), "--net"}
	if os.Getuid() != 0 {
		enter = append(enter, "--user", "--preserve-credentials")
	}
	return append(enter, command...)
}

// Do runs a command in there to its end, and returns what it says.
func (ns *Namespace) Do(command ...string) (string, error) { return ns.feed("", command...) }

func (ns *Namespace) feed(input string, command ...string) (string, error) {
	argv := ns.Enter(command...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Program finds a program, or says what to install.
func Program(name, from string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: install %s", err, from)
	}
	return path, nil
}
