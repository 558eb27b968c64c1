package npmworkspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/deployctl/deployctl/internal/project/npmworkspace"
)

func TestAMemberFindsItsWorkspace(t *testing.T) {
	for what, c := range map[string]struct {
		file, text, member string
		is                 bool
	}{
		"npm":                          {"package.json", `{"workspaces": ["packages/*", "infra"]}`, "infra", true},
		"npm, by a glob":               {"package.json", `{"workspaces": ["packages/*"]}`, "packages/infra", true},
		"npm, deeper than the glob":    {"package.json", `{"workspaces": ["packages/*"]}`, "packages/a/infra", false},
		"npm, any depth":               {"package.json", `{"workspaces": ["./packages/**"]}`, "packages/a/infra", true},
		"Yarn":                         {"package.json", `{"workspaces": {"packages": ["infra"]}}`, "infra", true},
		"pnpm":                         {"pnpm-workspace.yaml", "packages:\n  - 'apps/*'\n", "apps/infra", true},
		"pnpm, taken out":              {"pnpm-workspace.yaml", "packages:\n  - '**'\n  - '!infra'\n", "infra", false},
		"a package that is no member":  {"package.json", `{"workspaces": ["packages/*"]}`, "infra", false},
		"a directory without any":      {"package.json", `{"name": "x"}`, "infra", false},
		"a package.json that is wrong": {"package.json", `{`, "infra", false},
	} {
		root := t.TempDir()
		dir := filepath.Join(root, filepath.FromSlash(c.member))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		want := ""
		if c.is {
			want = root
		}
		if got := npmworkspace.Root(dir, filepath.Dir(root), os.ReadFile); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		if got := npmworkspace.Root(dir, dir, os.ReadFile); got != "" {
			t.Errorf("%s: %q is above the top", what, got)
		}
	}
}
