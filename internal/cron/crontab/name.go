package crontab

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-coord/coord/internal/lazy"
)

// maxName is how many bytes of a suggested name come from the command.
const maxName = 60

// shellWords stand before a command, and are not what it does.
var shellWords = []string{
	"if", "then", "else", "elif", "while", "until", "do", "!", "time", "exec", "command", "builtin", "nohup", "setsid", "sudo",
	"nice", "ionice", "chronic", "cronic", "env", "chrt", "timeout", "systemd-cat",
}

// preparations are commands that stand before the one that matters.
var preparations = []string{"[", "[[", "test", "true", ":", "cd", "export", "set", "umask", "ulimit", ".", "source", "sleep", "fi", "done", "mkdir", "which", "-v"}

// runners run what their first argument names.
var runners = []string{"sh", "bash", "dash", "zsh", "ksh", "perl", "python", "python2", "python3", "php", "ruby", "node", "lua", "run-parts", "java"}

var (
	// inner is what a command is made of, and no command of its own: what stands in quotes, and in substitutions.
	inner = lazy.Regexp("'[^']*'|`[^`]*`|" + `\$\{[^{}]*\}|\$\([^()]*\)`)
	// separators part the commands of a script; whether they stand in quotes does not matter for a suggestion.
	separators = lazy.Regexp(`&&|\|\||[;&|(){}]`)
	assignment = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*=`)
	notInName  = lazy.Regexp(`[^A-Za-z0-9._-]+`)
	// option is a flag, or the number or time that belongs to one.
	option = lazy.Regexp(`^(-.*|[0-9.]+[smhd]?)$`)
	dots   = lazy.Regexp(`\.\.+`)
)

// name suggests one that no other job has: the base name of the first command that is more than a preparation, and a number if that is
// taken.
func (p *parser) name(script string) string {
	base := sanitize(program(script))
	name := base
	for n := 2; p.names[name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	return name
}

// program gives the word that says best what a script does.
func program(script string) (name string) {
	for found := true; found; {
		bare := inner().ReplaceAllString(script, "")
		found, script = bare != script, bare
	}
	for _, part := range separators().Split(script, -1) {
		args := command(strings.Fields(part))
		if len(args) == 0 || slices.Contains(preparations, args[0]) {
			continue
		}
		if slices.Contains(runners, path.Base(args[0])) {
			i := slices.IndexFunc(args[1:], func(arg string) bool { return !strings.HasPrefix(arg, "-") && strings.ContainsAny(arg, "/.") })
			if i >= 0 {
				return args[1+i]
			}
			// A few words of its language, which prepare something if anything follows.
			name = cmp.Or(name, args[0])
			continue
		}
		return args[0]
	}
	return name
}

// command leaves out what stands before a command.
func command(args []string) []string {
	for len(args) > 0 {
		switch {
		case len(args) > 1 && (args[0] == "-u" || args[0] == "-g"):
			args = args[2:]
		case args[0] == "-v":
			// Of command -v, which looks whether a command is there.
			return args
		case assignment().MatchString(args[0]), option().MatchString(args[0]), slices.Contains(shellWords, path.Base(args[0])):
			args = args[1:]
		default:
			return args
		}
	}
	return nil
}

// sanitize makes a valid name of a word.
func sanitize(word string) string {
	name := notInName().ReplaceAllString(path.Base(strings.Trim(word, `"'`)), "-")
	name = dots().ReplaceAllString(name, ".")
	if len(name) > maxName {
		name = name[:maxName]
	}
	name = strings.Trim(name, "._-")
	if name == "" {
		return "job"
	}
	return name
}
