package guard

import (
	"os"
	"path/filepath"
)

// The names under which the processes of a hold are seen. None holds the name of the tool or of a command, so that
// killing those by name leaves the guard to do its work.
const (
	Name         = "holdguard"   // argv[0] and process name of the guard
	ReleaseName  = "holdrelease" // argv[0] of the release program
	ReleaseClose = "close"       // argv[1] of it: close the open record, leave the key alone

	// roleWord is the guard's argv[1]: the version of the protocol. A guard of another version does not start.
	roleWord = "serve-3"
	// What follows says what is handed over beside the pipes, in the order of the descriptors: settings and a release
	// program, a file to keep open.
	withRelease = "release"
	withKept    = "kept"
)

// SettingsFD is where the release program finds the settings. Read them with ReadAt.
const SettingsFD = 3

// KeptFD is where children find Options.Kept.
const KeptFD = 3

// The guard's descriptors. What else is handed over follows.
const (
	requestsFD = 3 + iota
	eventsFD
	extraFD
)

// IsRole reports whether a process with these arguments is to be the guard: then Main is its whole work.
func IsRole(args []string) bool {
	return len(args) >= 2 && filepath.Base(args[0]) == Name && args[1] == roleWord
}

// IsRelease reports whether a process with these arguments is to be the release program, and whether it is to
// close the open record only.
func IsRelease(args []string) (release, closing bool) {
	if len(args) == 0 || args[0] != ReleaseName {
		return false, false
	}
	return true, len(args) > 1 && args[1] == ReleaseClose
}

// Locate finds the guard program that belongs to an executable: beside it, or in ../libexec/conch. It is empty when
// there is none; then the executable plays the role itself.
func Locate(executable string) string {
	if real, err := filepath.EvalSymlinks(executable); err == nil {
		executable = real
	}
	dir := filepath.Dir(executable)
	for _, path := range []string{filepath.Join(dir, Name), filepath.Join(dir, "..", "libexec", "conch", Name)} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}
