// Package pythonproject finds the package manager of a Python program, its virtual environment, and the workspace that
// it belongs to.
package pythonproject

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/deployctl/deployctl/internal/project/npmworkspace"
)

// Runtime is the name of the runtime.
const Runtime = "python"

// The package managers.
const (
	Pip    = "pip"
	UV     = "uv"
	Poetry = "poetry"
)

// The files in which packages are declared and locked.
const (
	Requirements = "requirements.txt"
	Manifest     = "pyproject.toml"
	uvLock       = "uv.lock"
	poetryLock   = "poetry.lock"
)

// LockFiles are the files beside a virtual environment, or above the program, that decide what is installed.
var LockFiles = []string{Requirements, Manifest, uvLock, poetryLock, "uv.toml", "poetry.toml", ".python-version"}

// defaultVenv is the virtual environment that uv and Poetry make for a project.
const defaultVenv = ".venv"

// Project is where the packages of a program come from, and go to.
type Project struct {
	Manager string // Pip, UV or Poetry
	Dir     string // the directory of what the manager reads, the lock file if there is one
	Venv    string // the virtual environment, absolute; empty: the Python on PATH is used with the packages that it has
	Locked  bool   // there is a lock file
}

// Program is a program in its project.
type Program struct {
	Root    string         // the directory of Pulumi.yaml
	Dir     string         // the program's, which is the same or below
	Options map[string]any // runtime.options of Pulumi.yaml
}

// Reader reads a file.
type Reader func(path string) ([]byte, error)

// Find follows the options toolchain and virtualenv and, without toolchain, the lock file that is next above the
// program, as Pulumi's own language host does. Without a lock file the manager is pip.
func Find(p Program, read Reader) (Project, error) {
	manager, _ := p.Options["toolchain"].(string)
	venv, _ := p.Options["virtualenv"].(string)
	if venv != "" && !filepath.IsAbs(venv) {
		venv = filepath.Join(p.Root, filepath.FromSlash(venv))
	}
	uvDir, poetryDir := above(p.Dir, uvLock, read), above(p.Dir, poetryLock, read)
	if manager == "" {
		switch {
		case uvDir != "":
			manager = UV
		case poetryDir != "":
			manager = Poetry
		default:
			manager = Pip
		}
	}
	switch manager {
	case Pip:
		return Project{Manager: Pip, Dir: requirements(p, read), Venv: venv}, nil
	case UV:
		project := Project{Manager: UV, Dir: uvDir, Venv: venv, Locked: uvDir != ""}
		return project.orManifest(p, read)
	case Poetry: // which knows no other place for the environment of a project
		project := Project{Manager: Poetry, Dir: poetryDir, Locked: poetryDir != ""}
		return project.orManifest(p, read)
	}
	return Project{}, fmt.Errorf("unknown toolchain %q in Pulumi.yaml: use pip, uv or poetry", manager)
}

// orManifest completes a project whose manager reads pyproject.toml.
func (q Project) orManifest(p Program, read Reader) (Project, error) {
	if q.Dir == "" {
		q.Dir = above(p.Dir, Manifest, read)
	}
	if q.Dir == "" {
		return q, fmt.Errorf("the toolchain %s of Pulumi.yaml needs a %s in the program's directory or above it, and there "+
			"is none: write one, or list the packages in %s and use the toolchain pip", q.Manager, Manifest, Requirements)
	}
	if q.Venv == "" {
		q.Venv = filepath.Join(q.Dir, defaultVenv)
	}
	return q, nil
}

// above is the nearest directory with a file, from dir up, or empty.
func above(dir, file string, read Reader) string { return upTo(dir, "", file, read) }

func upTo(dir, top, file string, read Reader) string {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := read(filepath.Join(dir, file)); err == nil {
			return dir
		}
		if dir == top || dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// requirements is the directory of the program's requirements.txt: its own, or one above it in the project; the
// project's if there is none.
func requirements(p Program, read Reader) string {
	if dir := upTo(p.Dir, p.Root, Requirements, read); dir != "" {
		return dir
	}
	return p.Root
}

// Declared is the nearest directory with a pyproject.toml, from dir up to top, or empty.
func Declared(dir, top string, read Reader) string { return upTo(dir, top, Manifest, read) }

// manifest is as much of a pyproject.toml as matters here.
type manifest struct {
	BuildSystem map[string]any `toml:"build-system"`
	Project     struct{ Name string }
	Tool        struct {
		Poetry struct {
			PackageMode *bool `toml:"package-mode"`
		}
		UV struct {
			Workspace *struct{ Members, Exclude []string }
		}
	}
}

func readManifest(dir string, read Reader) (m manifest, err error) {
	text, err := read(filepath.Join(dir, Manifest))
	if err == nil {
		err = toml.Unmarshal(text, &m)
	}
	return m, err
}

// Package is the name of the package that the project in dir can be built as, or empty.
func Package(dir string, read Reader) string {
	m, err := readManifest(dir, read)
	if err != nil || m.BuildSystem == nil {
		return ""
	}
	return m.Project.Name
}

// Workspace is the root of the uv workspace that the project in dir is a member of, from above dir up to top, or empty.
// Its packages are installed from their directories, so an update has to take it along.
func Workspace(dir, top string, read Reader) string {
	for at := dir; at != top && at != filepath.Dir(at); {
		at = filepath.Dir(at)
		m, err := readManifest(at, read)
		if err != nil || m.Tool.UV.Workspace == nil {
			continue
		}
		rel, err := filepath.Rel(at, dir)
		w := m.Tool.UV.Workspace
		if err == nil && npmworkspace.Member(w.Members, rel) && !npmworkspace.Member(w.Exclude, rel) {
			return at
		}
	}
	return ""
}

// lockedPackage is an entry of a uv.lock or a poetry.lock.
type lockedPackage struct {
	Name   string
	Source struct {
		Type                         string // of Poetry
		Editable, Directory, Virtual string // of uv
	}
}

func (p lockedPackage) local() bool {
	return p.Source.Editable+p.Source.Directory+p.Source.Virtual != "" || p.Source.Type == "directory" ||
		p.Source.Type == "file"
}

func (q Project) locked(read Reader) ([]lockedPackage, error) {
	name := uvLock
	if q.Manager == Poetry {
		name = poetryLock
	}
	var lock struct{ Package []lockedPackage }
	text, err := read(filepath.Join(q.Dir, name))
	if err == nil {
		err = toml.Unmarshal(text, &lock)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return lock.Package, nil
}

// Local are the packages of the lock file that are directories of the project.
func (q Project) Local(read Reader) ([]string, error) {
	packages, err := q.locked(read)
	var names []string
	for _, p := range packages {
		if p.local() {
			names = append(names, p.Name)
		}
	}
	return names, err
}

// SelfContained reports whether what is installed depends on the LockFiles in Dir alone, and not on other files or
// directories of the project.
func (q Project) SelfContained(read Reader) bool {
	if q.Manager == Pip {
		text, err := read(filepath.Join(q.Dir, Requirements))
		return err != nil || plain(string(text))
	}
	if !q.Locked {
		return false
	}
	packages, err := q.locked(read)
	if err != nil {
		return false
	}
	for _, p := range packages {
		if p.local() && p.Source.Virtual != "." {
			return false
		}
	}
	if q.Manager == UV {
		return true
	}
	m, err := readManifest(q.Dir, read) // Poetry installs the project itself as a link to its directory
	return err == nil && m.Tool.Poetry.PackageMode != nil && !*m.Tool.Poetry.PackageMode
}

// plain reports whether a requirements.txt has only names, versions and digests: options and paths lead to other files.
func plain(text string) bool {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		if strings.HasPrefix(line, "--hash=") {
			continue
		}
		line = strings.TrimSuffix(line, `\`) // the next line goes on
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, ".") || strings.ContainsAny(line, `/\`) {
			return false
		}
	}
	return true
}
