package templates

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// FromDirectory reads the template in a directory.
func FromDirectory(dir string) (*Template, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "cannot read the template: %w", err)
	}
	defer func() { _ = root.Close() }()
	files, err := read(root.FS())
	if err != nil {
		return nil, err
	}
	t, err := parse(filepath.Base(dir), files)
	if errors.Is(err, errNoProject) {
		err = deployments.Errorf(deployments.CodeInvalid, "%s is no template: %w", dir, err)
	}
	return t, err
}

// read reads all files but git's own.
func read(from fs.FS) (files []File, err error) {
	total := 0
	err = fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && isGit(d.Name()):
			return fs.SkipDir
		case d.IsDir() || isGit(d.Name()): // a file of that name is git's in a work tree
			return nil
		case !d.Type().IsRegular():
			return deployments.Errorf(deployments.CodeInvalid, "the template has %q, which is no regular file: a "+
				"template may not have symbolic links", name)
		case len(files) == maxFiles:
			return tooMany(maxFiles + 1)
		}
		f, err := readFile(from, name)
		if total += len(f.Content); err == nil && total > maxTotal {
			err = tooLarge(name)
		}
		files = append(files, f)
		return err
	})
	return files, err
}

func readFile(from fs.FS, name string) (File, error) {
	opened, err := from.Open(name)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = opened.Close() }()
	info, err := opened.Stat()
	if err != nil {
		return File{}, err
	}
	content, err := io.ReadAll(io.LimitReader(opened, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = tooLarge(name)
	}
	return File{name, content, info.Mode()&0o111 != 0}, err
}

// Occupied returns a file of a directory in which a project is to be made; "" if it is empty, or not there. A git
// repository without files is empty.
func Occupied(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	for _, e := range entries {
		if e.Name() != ".git" {
			return e.Name(), err
		}
	}
	return "", err
}

// Write writes the files of a project below a directory, which is made. A file that exists is replaced; links in the
// directory are never followed out of it. Pulumi.yaml is written last: without it, the directory is no project yet.
func Write(dir string, files []File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	var last []File
	for _, f := range files {
		if f.Path == projectFile {
			last = append(last, f)
		} else if err := writeFile(root, f); err != nil {
			return err
		}
	}
	for _, f := range last {
		if err := writeFile(root, f); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(root *os.Root, f File) error {
	name, mode := filepath.FromSlash(f.Path), fs.FileMode(0o644)
	if f.Executable {
		mode = 0o755
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	opened, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = opened.Write(f.Content)
	return errors.Join(err, opened.Close())
}

// ProjectName returns a name for a project in a directory: the directory's, without what a name may not have.
func ProjectName(dir string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, filepath.Base(dir))
	name = strings.Trim(name, "-._")
	if deployments.ValidateName("project", name) != nil {
		return "project"
	}
	return name
}
