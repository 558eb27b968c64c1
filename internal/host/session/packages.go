package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/plugin/languagehost"
	"github.com/deployctl/deployctl/internal/project/npmworkspace"
	"github.com/deployctl/deployctl/internal/project/pythonproject"
)

// installable reports whether packages are installed for programs of a runtime before they start.
func installable(runtime string) bool {
	return npmworkspace.Runtime(runtime) || runtime == pythonproject.Runtime
}

// packages are what a program imports of others, and where it is installed.
type packages struct {
	dir     string // where they are listed
	modules string // the directory that the installation makes: node_modules, or a virtual environment
	probe   string // exists in or as modules if they can be used
	key     string // says what is installed, so that bundles of the stack share it; empty: it fits only this program
}

// manifest is the part of a package.json that shows whether an installation depends on other files of the program.
type manifest struct {
	Scripts                                             map[string]string
	Workspaces                                          json.RawMessage
	Dependencies, DevDependencies, OptionalDependencies map[string]string
}

// lockFiles are the files of a program that decide what is installed; lifecycle are the scripts of a package.json that
// an installation runs.
var (
	lockFiles = []string{"package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml",
		"bun.lock", "bun.lockb", "bunfig.toml", ".npmrc", ".yarnrc", ".yarnrc.yml",
		"pnpm-workspace.yaml"}
	lifecycle = []string{"preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"}
)

// nodePackages describes the packages of the package.json in dir.
func (s *Session) nodePackages(dir string) *packages {
	modules := filepath.Join(dir, "node_modules")
	return &packages{dir: dir, modules: modules, probe: modules, key: s.nodeKey(dir)}
}

// nodeKey is the key of packages of Node: empty if the installation runs scripts of the program or links other
// directories.
func (s *Session) nodeKey(dir string) string {
	text, err := s.box.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil || !selfContained(text) {
		return ""
	}
	if _, err := s.box.ReadFile(filepath.Join(dir, "pnpm-workspace.yaml")); err == nil {
		return ""
	}
	return s.packageKey(dir, lockFiles)
}

// packageKey is the key of packages that are installed from files in dir; empty if these cannot be read.
func (s *Session) packageKey(dir string, files []string) string {
	key := sha256.New()
	_, _ = fmt.Fprintln(key, s.update.StackName, s.host.InstallScripts())
	for _, name := range files {
		text, err := s.box.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		_, _ = fmt.Fprintf(key, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(key.Sum(nil)[:16])
}

func selfContained(text []byte) bool {
	var m manifest
	if json.Unmarshal(text, &m) != nil || m.Workspaces != nil {
		return false
	}
	for _, script := range lifecycle {
		if m.Scripts[script] != "" {
			return false
		}
	}
	for _, dependencies := range []map[string]string{m.Dependencies, m.DevDependencies, m.OptionalDependencies} {
		if slices.ContainsFunc(slices.Collect(maps.Values(dependencies)), localDependency) {
			return false
		}
	}
	return true
}

// localDependency reports whether a dependency is a path in the file system.
func localDependency(version string) bool {
	for _, prefix := range []string{"file:", "link:", "portal:", "workspace:", ".", "/", "~/"} {
		if strings.HasPrefix(version, prefix) {
			return true
		}
	}
	return false
}

// pythonPackages describes the packages of a Python program; nil if it has no virtual environment that is made for it.
func (s *Session) pythonPackages(program pythonproject.Program) (*packages, error) {
	project, err := pythonproject.Find(program, s.box.ReadFile)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%w", err)
	}
	given, _ := program.Options["virtualenv"].(string)
	if project.Venv == "" || filepath.IsAbs(given) && given == project.Venv {
		return nil, nil // it is somebody else's
	}
	inside := func(path string) bool {
		below, err := filepath.Rel(s.place, path)
		return err == nil && filepath.IsLocal(below)
	}
	if !inside(project.Venv) || !inside(project.Dir) {
		return nil, deployments.Errorf(deployments.CodeInvalid, "virtualenv in Pulumi.yaml leads out of what an update "+
			"takes along: name a directory of the project, such as venv, or the absolute path of an environment that exists "+
			"wherever programs run")
	}
	p := &packages{dir: project.Dir, modules: project.Venv, probe: languagehost.Interpreter(project.Venv)}
	if uploaded := s.uploadedFiles(p); uploaded {
		return nil, deployments.Errorf(deployments.CodeInvalid, "virtualenv in Pulumi.yaml names a directory with files of "+
			"the project: name one that does not exist, such as venv")
	}
	if project.SelfContained(s.box.ReadFile) {
		p.key = s.packageKey(project.Dir, pythonproject.LockFiles)
	}
	return p, nil
}

// uploadedFiles reports whether the directory of a virtual environment holds something else, which its making would
// remove.
func (s *Session) uploadedFiles(p *packages) bool {
	if s.bundles.Incomplete(p.dir) {
		return false
	}
	if _, err := s.box.Stat(filepath.Join(p.modules, "pyvenv.cfg")); err == nil {
		return false
	}
	entries, err := s.box.ReadDir(p.modules, 1)
	return err != nil && !errors.Is(err, fs.ErrNotExist) || len(entries) > 0
}
