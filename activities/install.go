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

// installDependencies installs the packages that a Node program and its dynamic providers import, unless the bundle
// contains them. If another bundle of the stack has installed the same packages on this worker, they are linked, so
// that an edited program or configuration does not wait for npm. The packages stay in the bundle's directory; a lock
// makes sessions, also those of other processes, install one after another.
func (s *session) installDependencies(ctx context.Context) error {
	if s.project == nil || !npmworkspace.Runtime(s.project.Runtime.Name()) {
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

// packageDir returns where the program's dependencies are installed: the directory of its package.json, which is the
// program's or one above it in the bundle, or the root of the workspace of that package. "" if there is none.
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

// install installs what the program imports.
func (s *session) install(ctx context.Context) error {
	dir := s.packageDir()
	if dir == "" {
		return nil
	}
	return s.installModules(ctx, dir, func(ctx context.Context) error {
		language, err := s.host.Language(ctx, s.project.Runtime.Name())
		if err != nil {
			return err
		}
		defer language.Close()
		return language.InstallDependencies(ctx, dir)
	})
}

// installSource installs what a policy pack or a plugin imports whose source is in dir. Outside the bundle, that is
// part of the plugin's installation.
func (s *session) installSource(
	ctx context.Context, dir, runtime string, install func(context.Context) error,
) error {
	below, err := filepath.Rel(s.place, dir)
	if err != nil || !filepath.IsLocal(below) || runtime == "go" { // which fetches modules as it builds
		return nil
	}
	s.installing.Lock()
	defer s.installing.Unlock()
	lock, err := s.bundles.LockInstall(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if !npmworkspace.Runtime(runtime) {
		return install(ctx)
	}
	if _, err := s.box.Stat(filepath.Join(dir, "package.json")); err != nil {
		return nil
	}
	return s.installModules(ctx, dir, install)
}

// installModules creates the node_modules of the package.json in dir, unless they exist and are complete.
func (s *session) installModules(ctx context.Context, dir string, install func(context.Context) error) error {
	modules := filepath.Join(dir, "node_modules")
	_, missing := s.box.Stat(modules)
	if missing == nil && !s.bundles.Incomplete(dir) && s.useModules(ctx, modules) {
		return nil
	}
	shared, shareable := s.sharedModules(dir)
	if _, err := s.box.Stat(modules); err != nil {
		_ = s.inBundles(modules, (*os.Root).Remove) // it may be a link to a bundle that was removed
		if shareable && s.linkModules(ctx, shared, modules) {
			return nil
		}
	}
	if err := s.bundles.BeginInstall(dir); err != nil {
		return err
	}
	defer s.phases.begin("installing packages")()
	if err := install(ctx); err != nil {
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

// linkModules links modules that another bundle has installed; false if there are none.
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

// inBundles runs a change inside the directory of bundles, which it cannot leave: a program may have replaced any
// directory of its bundle by a link.
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

// useModules pins modules that another bundle may have installed; false if they were removed.
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

// sharedModules returns the link to the modules that a bundle of the stack has installed for the same lock files as
// those of the program in dir. shareable is false if the installation runs scripts of the program or links other
// directories, so that it fits only this program.
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

// localDependency reports whether a dependency is a path in the file system.
func localDependency(version string) bool {
	for _, prefix := range []string{"file:", "link:", "portal:", "workspace:", ".", "/", "~/"} {
		if strings.HasPrefix(version, prefix) {
			return true
		}
	}
	return false
}
