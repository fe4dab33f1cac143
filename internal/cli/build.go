package cli

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"go.etcd.io/etcd/api/v3/version"
)

// What a binary says of itself; the linker sets these (see the Makefile). Nothing else writes them.
var (
	Version = "dev"
	Commit  = "unknown"
	Date    = "unknown"
)

// Build is what a program was built from.
type Build struct {
	Version    string `json:"version"`
	Commit     string `json:"commit"` // with "-dirty" where the tree had changes
	Date       string `json:"date"`   // of the commit
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	EtcdClient string `json:"etcd_client"`
}

// ThisBuild describes this program: by what the linker set, else by what the Go tool noted.
func ThisBuild() Build {
	info, _ := debug.ReadBuildInfo()
	return buildOf(Version, Commit, Date, info)
}

// buildOf fills what the linker did not set from info, which may be nil.
func buildOf(name, commit, date string, info *debug.BuildInfo) Build {
	b := Build{
		Version: name, Commit: commit, Date: date,
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, EtcdClient: version.Version,
	}
	if info == nil {
		return b
	}
	noted := map[string]string{}
	for _, s := range info.Settings {
		noted[s.Key] = s.Value
	}
	if v := info.Main.Version; b.Version == "dev" && v != "(devel)" {
		b.Version = cmp.Or(v, b.Version)
	}
	if revision := noted["vcs.revision"]; b.Commit == "unknown" && revision != "" {
		b.Commit = revision[:min(12, len(revision))]
		if noted["vcs.modified"] == "true" {
			b.Commit += "-dirty"
		}
	}
	if b.Date == "unknown" {
		b.Date = cmp.Or(noted["vcs.time"], b.Date)
	}
	return b
}
