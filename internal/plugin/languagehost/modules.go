package languagehost

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// What is looked at of installed packages at most: whoever has installed them decides what lies there.
const (
	mostModules = 200_000
	mostEntries = 100_000 // of one directory
)

// moduleSearch visits the packages in directories node_modules and in those within, each once. What cannot be read is
// not a package.
type moduleSearch struct {
	node    node
	ctx     context.Context //nolint:containedctx // of the one call that searches
	visited map[string]bool // by real path
	visit   func(manifest) error
}

// fresh reports whether a directory is there that was not visited before, and returns its real path.
func (s *moduleSearch) fresh(dir string) (real string, ok bool, err error) {
	if real, err = s.node.tools.box.RealPath(dir); err != nil || s.visited[real] {
		return "", false, nil //nolint:nilerr // it is not there
	}
	s.visited[real] = true
	if len(s.visited) > mostModules {
		return "", false, fmt.Errorf("the program has more than %d directories of packages", mostModules)
	}
	return real, true, s.ctx.Err()
}

// in visits the packages in a node_modules directory.
func (s *moduleSearch) in(modules string) error {
	real, ok, err := s.fresh(modules)
	if err != nil || !ok {
		return err
	}
	for _, name := range s.names(real) {
		path := filepath.Join(real, name)
		switch {
		case name == ".pnpm", name == ".bun": // where what the links in other directories point to is kept
			for _, stored := range s.names(path) {
				err = errors.Join(err, s.in(filepath.Join(path, stored, "node_modules")))
			}
		case strings.HasPrefix(name, "."):
		case strings.HasPrefix(name, "@"):
			for _, scoped := range s.names(path) {
				err = errors.Join(err, s.module(filepath.Join(path, scoped)))
			}
		default:
			err = s.module(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *moduleSearch) names(dir string) (names []string) {
	entries, _ := s.node.tools.box.ReadDir(dir, mostEntries)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// module visits the package in a directory.
func (s *moduleSearch) module(dir string) error {
	real, ok, err := s.fresh(dir)
	if err != nil || !ok {
		return err
	}
	if m, err := s.node.readManifest(real); err == nil {
		if err := s.visit(m); err != nil {
			return err
		}
	}
	return s.in(filepath.Join(real, "node_modules"))
}
