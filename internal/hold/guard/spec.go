package guard

import "encoding/json"

// Spec is what is to be run. Path is absolute or relative to Dir and has been resolved by the wrapper:
// the guard searches no PATH.
type Spec struct {
	Path string
	Argv []string
	Env  []string
	Dir  string
	// Foreground makes the run's process group the terminal's foreground group, where there is a
	// terminal and the wrapper's group is in its foreground.
	Foreground bool

	// Stdin, Stdout and Stderr are absolute paths that are opened for this run right before its fork: the first for
	// reading, the others for appending. Nothing is created. For an open file of the wrapper see Path. Empty: the
	// guard's own. A pipe whose other end nobody has open is refused (ENXIO), not waited for.
	Stdin, Stdout, Stderr string

	// Credential is whom the child runs as. Nil: whoever the guard runs as. It takes a guard that is root.
	Credential *Credential

	// Umask of the child, at most 0o777. Nil: the guard's own. Only Linux has one that is not the whole process's, and
	// only for who may call unshare(2), which Docker's seccomp profile forbids: elsewhere the run is refused (ENOTSUP, EPERM).
	Umask *int
}

// Credential is a user with groups. Groups are all that the child has beside GID.
type Credential struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
}

// wireSpec is a Spec on the pipe: paths, arguments and variables are bytes, not text, and have to arrive
// unchanged, which a JSON string does only for valid UTF-8.
type wireSpec struct {
	Path       []byte      `json:"path"`
	Argv       [][]byte    `json:"argv"`
	Env        [][]byte    `json:"env"`
	Dir        []byte      `json:"dir,omitempty"`
	Foreground bool        `json:"foreground,omitempty"`
	Stdin      []byte      `json:"stdin,omitempty"`
	Stdout     []byte      `json:"stdout,omitempty"`
	Stderr     []byte      `json:"stderr,omitempty"`
	Credential *Credential `json:"credential,omitempty"`
	Umask      *int        `json:"umask,omitempty"`
}

// MarshalJSON writes every string as base64.
func (s Spec) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireSpec{
		Path: []byte(s.Path), Argv: toBytes(s.Argv), Env: toBytes(s.Env), Dir: []byte(s.Dir), Foreground: s.Foreground,
		Stdin: []byte(s.Stdin), Stdout: []byte(s.Stdout), Stderr: []byte(s.Stderr),
		Credential: s.Credential, Umask: s.Umask,
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Spec) UnmarshalJSON(data []byte) error {
	var w wireSpec
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*s = Spec{
		Path: string(w.Path), Argv: toStrings(w.Argv), Env: toStrings(w.Env), Dir: string(w.Dir), Foreground: w.Foreground,
		Stdin: string(w.Stdin), Stdout: string(w.Stdout), Stderr: string(w.Stderr),
		Credential: w.Credential, Umask: w.Umask,
	}
	return nil
}

func toBytes(in []string) [][]byte {
	out := make([][]byte, len(in))
	for i, s := range in {
		out[i] = []byte(s)
	}
	return out
}

func toStrings(in [][]byte) []string {
	out := make([]string, len(in))
	for i, b := range in {
		out[i] = string(b)
	}
	return out
}
