package cli

import (
	"runtime/debug"
	"testing"
)

func TestABuildIsDescribedByTheLinkerElseByTheGoTool(t *testing.T) {
	t.Parallel()
	noted := &debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.modified", Value: "true"}, {Key: "vcs.time", Value: "2026-01-01T00:00:00Z"},
		},
	}
	for _, tt := range []struct {
		name                  string
		version, commit, date string
		info                  *debug.BuildInfo
		want                  [3]string
	}{
		{"nothing known", "dev", "unknown", "unknown", nil, [3]string{"dev", "unknown", "unknown"}},
		{"the go tool knows nothing", "dev", "unknown", "unknown", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, [3]string{"dev", "unknown", "unknown"}},
		{"the go tool knows", "dev", "unknown", "unknown", noted, [3]string{"v1.2.3", "0123456789ab-dirty", "2026-01-01T00:00:00Z"}},
		{"the linker knows", "v2", "abc", "today", noted, [3]string{"v2", "abc", "today"}},
	} {
		b := buildOf(tt.version, tt.commit, tt.date, tt.info)
		if got := [3]string{b.Version, b.Commit, b.Date}; got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if b.Go == "" || b.OS == "" || b.Arch == "" || b.EtcdClient == "" {
			t.Errorf("%s: got %+v", tt.name, b)
		}
	}
}
