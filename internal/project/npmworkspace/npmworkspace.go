// Package npmworkspace finds the workspace of npm, pnpm, Yarn or bun that a package belongs to.
package npmworkspace

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/deployctl/deployctl/internal/values/glob"
)

// Runtime reports whether programs of a runtime import packages of npm.
func Runtime(name string) bool { return name == "nodejs" || name == "bun" }

// Package is the nearest directory with a package.json that read reads, from dir up to top, or empty.
func Package(dir, top string, read func(path string) ([]byte, error)) string {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := read(filepath.Join(dir, "package.json")); err == nil {
			return dir
		}
		if dir == top || dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// Root is the directory of the workspace that the package in dir is a member of, from above dir up to top, or empty:
// what is installed for the package is installed there. Files are read by read.
func Root(dir, top string, read func(path string) ([]byte, error)) string {
	for at := dir; at != top && at != filepath.Dir(at); {
		at = filepath.Dir(at)
		member, err := filepath.Rel(at, dir)
		if err == nil && Member(patterns(at, read), member) {
			return at
		}
	}
	return ""
}

// patterns are the globs of the workspace whose root dir is; none if it is no root.
func patterns(dir string, read func(path string) ([]byte, error)) []string {
	var pnpm struct{ Packages []string }
	if text, err := read(filepath.Join(dir, "pnpm-workspace.yaml")); err == nil && yaml.Unmarshal(text, &pnpm) == nil {
		return pnpm.Packages
	}
	var manifest struct{ Workspaces json.RawMessage }
	text, err := read(filepath.Join(dir, "package.json"))
	if err != nil || json.Unmarshal(text, &manifest) != nil {
		return nil
	}
	var list []string
	var yarn struct{ Packages []string }
	if json.Unmarshal(manifest.Workspaces, &list) != nil && json.Unmarshal(manifest.Workspaces, &yarn) == nil {
		list = yarn.Packages
	}
	return list
}

// Member tells whether the last pattern that is about a directory takes it in.
func Member(patterns []string, member string) bool {
	in, member := false, filepath.ToSlash(member)
	for _, p := range patterns {
		p, out := strings.CutPrefix(p, "!")
		p = strings.Trim(strings.TrimPrefix(p, "./"), "/")
		if glob.Path(strings.Split(p, "/"), strings.Split(member, "/")) {
			in = !out
		}
	}
	return in
}
