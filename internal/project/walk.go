package project

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/deployctl/deployctl/deployments"
)

// walker lists files below roots.
type walker struct {
	roots []string
	base  string            // what names are relative to
	found map[string]string // name, with "/" → path to read
	dirs  []string          // those that were walked, and those of single files

	ignore ignores
	root   string // of the walk in progress
}

// enter walks one root.
func (w *walker) enter(root string) (err error) {
	if w.found == nil {
		w.found = map[string]string{}
	}
	info, err := os.Stat(root)
	if err != nil {
		return err
	}
	w.root = root
	if !info.IsDir() {
		w.dirs = append(w.dirs, filepath.Dir(root))
		return w.add(root, root)
	}
	if w.ignore, err = loadIgnores(root); err != nil {
		return err
	}
	return w.directory(root, nil)
}

// directory walks one directory; above are the real paths of the directories it was reached through.
func (w *walker) directory(dir string, above []string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if slices.Contains(above, real) {
		return deployments.Errorf(deployments.CodeInvalid, "%s is a symbolic link to a directory that it is in; "+
			"remove it, or exclude it in %s", dir, IgnoreFile)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "cannot read a directory of the project; exclude it in %s "+
			"if it is not needed: %w", IgnoreFile, err)
	}
	w.dirs = append(w.dirs, dir)
	for _, entry := range entries {
		if err := w.entry(filepath.Join(dir, entry.Name()), append(above, real)); err != nil {
			return err
		}
	}
	return nil
}

// entry takes a file, or walks a directory, unless it is ignored.
func (w *walker) entry(path string, above []string) error {
	name, err := filepath.Rel(w.root, path)
	if err != nil {
		return err
	}
	name = filepath.ToSlash(name)
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if w.ignore.match(name, info.IsDir()) {
		return nil
	}
	real := path
	if info.Mode()&os.ModeSymlink != 0 {
		if real, info, err = w.follow(path); err != nil {
			return err
		}
		if info.IsDir() && w.ignore.match(name, true) {
			return nil
		}
	}
	switch {
	case info.IsDir():
		if _, err := os.Stat(filepath.Join(path, virtualEnvironment)); err == nil {
			return nil
		}
		return w.directory(path, above)
	case info.Mode().IsRegular():
		return w.add(path, real)
	}
	return nil // sockets, pipes and devices are nobody's source
}

// follow resolves a symbolic link, which must stay below the roots: what it leads to would be missing elsewhere.
func (w *walker) follow(path string) (string, os.FileInfo, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", nil, deployments.Errorf(deployments.CodeInvalid,
			"%s is a symbolic link that leads nowhere; correct it, or exclude it in %s", path, IgnoreFile)
	}
	if !slices.ContainsFunc(w.roots, func(root string) bool { return within(real, root) }) {
		return "", nil, deployments.Errorf(deployments.CodeInvalid,
			"%s is a symbolic link to %s, outside the project; add that to deploy.include in Pulumi.yaml, or exclude "+
				"the link in %s", path, real, IgnoreFile)
	}
	info, err := os.Stat(real)
	return real, info, err
}

// add takes a file along under its name.
func (w *walker) add(path, real string) error {
	name, err := filepath.Rel(w.base, path)
	if err != nil {
		return err
	}
	if !utf8.ValidString(name) {
		return deployments.Errorf(deployments.CodeInvalid, "the name of the file %q is not UTF-8; rename it, or exclude it "+
			"in %s (%s)", path, IgnoreFile, ignoring(name))
	}
	w.found[filepath.ToSlash(name)] = real
	return nil
}

// ignoring returns a pattern for a file whose name is not UTF-8, which no line of a file of patterns can say.
func ignoring(name string) string {
	return filepath.ToSlash(strings.Map(func(r rune) rune {
		if r == utf8.RuneError {
			return '?'
		}
		return r
	}, name))
}
