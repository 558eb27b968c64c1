package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/bundlecache"
	"github.com/deployctl/deployctl/internal/npmworkspace"
)

// installDependencies installs what a Node program and its dynamic providers import, unless its bundle has it or
// another bundle of the stack installed just that on this worker: then that is linked, so that an edited program or
// configuration does not wait for npm. It stays with the bundle's directory, in which sessions install one after
// another, whichever process they belong to.
func (s *session) installDependencies(ctx context.Context) error {
	if s.project == nil || s.project.Runtime.Name() != "nodejs" {
		return nil
	}
	s.installing.Lock()
	defer s.installing.Unlock()
	if s.installed {
		return nil
	}
	lock, err := s.bundles.LockInstall(ctx, s.programDir())
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	err = s.install(ctx)
	s.installed = err == nil
	return err
}

// packageDir is where the program's dependencies are installed: at its package.json, in its directory or above it in
// the bundle, or at the root of the workspace that this belongs to. Empty when there is none.
func (s *session) packageDir() string {
	dir := npmworkspace.Package(s.programDir(), s.place, s.box.ReadFile)
	if dir == "" {
		return ""
	}
	if root := npmworkspace.Root(dir, s.place, s.box.ReadFile); root != "" {
		return root
	}
	return dir
}

// install makes the program's node_modules, unless they are there and whole.
func (s *session) install(ctx context.Context) error {
	dir := s.packageDir()
	if dir == "" {
		return nil
	}
	modules := filepath.Join(dir, "node_modules")
	_, missing := s.box.Stat(modules)
	if missing == nil && !s.bundles.Incomplete(dir) && s.useModules(ctx, modules) {
		return nil
	}
	shared, shareable := s.sharedModules(dir)
	if _, err := s.box.Stat(modules); err != nil {
		_ = s.inBundles(modules, (*os.Root).Remove) // it may lead to a bundle that is gone
		if shareable && s.linkModules(ctx, shared, modules) {
			return nil
		}
	}
	if err := s.bundles.BeginInstall(dir); err != nil {
		return err
	}
	language, err := s.host.Language(ctx, s.project.Runtime.Name())
	if err != nil {
		return err
	}
	defer language.Close()
	defer s.phases.begin("installing packages")()
	if err := language.InstallDependencies(ctx, dir); err != nil {
		return err
	}
	if err := s.bundles.EndInstall(dir); err != nil {
		return err
	}
	if shareable {
		// If this fails, other bundles install their own.
		_ = s.box.Do(func() error { return bundlecache.ShareModules(modules, shared) })
	}
	return nil
}

// linkModules takes modules that another bundle has installed; false when there are none.
func (s *session) linkModules(ctx context.Context, shared, modules string) bool {
	there, err := s.box.RealPath(shared)
	link := func(bundles *os.Root, modules string) error { return bundles.Symlink(there, modules) }
	if err != nil || s.inBundles(modules, link) != nil {
		return false
	}
	if s.useModules(ctx, modules) {
		return true
	}
	_ = s.inBundles(modules, (*os.Root).Remove)
	return false
}

// inBundles changes something in the bundle's directory, in which a program may put a link in the place of any
// directory.
func (s *session) inBundles(path string, change func(bundles *os.Root, path string) error) error {
	bundles, err := s.box.Bundles()
	if err != nil {
		return err
	}
	defer func() { _ = bundles.Close() }()
	path, err = filepath.Rel(bundles.Name(), path)
	if err != nil {
		return err
	}
	return s.box.Do(func() error { return change(bundles.Root, path) })
}

// useModules keeps modules that another bundle may have installed; false when they are gone.
func (s *session) useModules(ctx context.Context, modules string) bool {
	real, err := s.box.RealPath(modules)
	if err != nil {
		return false
	}
	entry, ok := s.bundles.EntryOf(s.update.Organization, real)
	if !ok || strings.HasPrefix(modules, entry+string(filepath.Separator)) {
		return true // they are the bundle's own
	}
	if err := s.pin(ctx, entry); err != nil {
		return false
	}
	_, err = s.box.Stat(real)
	return err == nil
}

// manifest is as much of a package.json as tells whether an installation depends on other files of the program.
type manifest struct {
	Scripts                                             map[string]string
	Workspaces                                          json.RawMessage
	Dependencies, DevDependencies, OptionalDependencies map[string]string
}

// The files that, with package.json, decide what is installed, and the scripts that an installation runs in the
// program.
var (
	lockFiles = []string{"package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml",
		".npmrc", ".yarnrc", ".yarnrc.yml",
		"pnpm-workspace.yaml"}
	lifecycle = []string{"preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"}
)

// sharedModules is where it is kept which bundle of the stack installed what the program in dir wants. It is false when
// the installation is only good for that program: it runs scripts or links other directories.
func (s *session) sharedModules(dir string) (path string, shareable bool) {
	key := sha256.New()
	_, _ = fmt.Fprintln(key, s.update.StackName, s.host.InstallScripts())
	for _, name := range lockFiles {
		text, err := s.box.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", false
		}
		_, _ = fmt.Fprintf(key, "%s %d\n%s", name, len(text), text)
		if name == "package.json" && !selfContained(text) || name == "pnpm-workspace.yaml" && err == nil {
			return "", false
		}
	}
	return s.bundles.SharedModules(s.update.Organization, hex.EncodeToString(key.Sum(nil)[:16])), true
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

// localDependency tells whether a dependency is somewhere in the file system.
func localDependency(version string) bool {
	for _, prefix := range []string{"file:", "link:", "portal:", "workspace:", ".", "/", "~/"} {
		if strings.HasPrefix(version, prefix) {
			return true
		}
	}
	return false
}
