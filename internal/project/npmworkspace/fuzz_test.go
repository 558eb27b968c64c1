package npmworkspace

import (
	"io/fs"
	"path/filepath"
	"testing"
)

// FuzzWorkspaces finds the workspace of a Node program of a stranger.
func FuzzWorkspaces(f *testing.F) {
	f.Add(`{"workspaces": ["a/**/b", "!a/b"]}`, "", "a/b")
	f.Add(`{"workspaces": {"packages": ["*"]}}`, "packages: ['**/**/**']", "a/b/c")
	f.Add(`{"workspaces": 1}`, "a: &a [x]\npackages: *a", "x")
	f.Fuzz(func(t *testing.T, manifest, pnpm, member string) {
		read := func(path string) ([]byte, error) {
			switch at := filepath.Base(path); {
			case at == "package.json":
				return []byte(manifest), nil
			case at == "pnpm-workspace.yaml" && pnpm != "":
				return []byte(pnpm), nil
			}
			return nil, fs.ErrNotExist
		}
		dir := filepath.Join("/w", filepath.Clean("/"+member))
		if root := Root(dir, "/", read); root != "" {
			if below, err := filepath.Rel(root, dir); err != nil || below == "." || !filepath.IsLocal(below) {
				t.Errorf("%s is in the workspace %s", dir, root)
			}
		}
		_ = Package(dir, "/", read)
	})
}
