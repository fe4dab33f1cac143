package terminal

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-coord/coord/internal/etcd/etcdtest"
	"github.com/go-coord/coord/internal/hold"
)

// A program that had the terminal to itself and was killed leaves it without echo and lines. Whatever ended it, the shell
// has it back as it was. Red without terminal.restore; red where it restores the group only.
func TestAProgramThatIsKilledLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("a line\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	ends := map[string]struct {
		end  func(t *testing.T, s *shell, child int)
		code string
	}{
		"killed": {func(t *testing.T, _ *shell, child int) {
			if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}, "137"},
		"lost": {func(t *testing.T, s *shell, _ int) {
			client := etcdtest.Shared(t).Client(t)
			if _, err := client.Delete(context.Background(), hold.ElectRange(s.office), clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
		}, "70"},
	}
	for _, child := range [][]string{{"vim", "vim.tiny"}, {"less"}} {
		for how, tt := range ends {
			t.Run(child[0]+" "+how, func(t *testing.T) {
				t.Parallel()
				s := inShell(t, sh...)
				modes, group := s.Modes(), s.Group()
				s.Type("conch elect $OFFICE -- " + program(t, child...) + " " + text + enter)
				s.Await("msg=child-start")
				tt.end(t, s, s.Raw(group))
				s.Await(prompt)
				if got := s.Modes(); got != modes {
					t.Errorf("modes %+v, want %+v", got, modes)
				}
				if got := s.Group(); got != group {
					t.Errorf("foreground group %d, want %d", got, group)
				}
				if code := s.code(); code != tt.code {
					t.Errorf("code %s, want %s; %s", code, tt.code, s.Stdout())
				}
				s.free()
			})
		}
	}
}
