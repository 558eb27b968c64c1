package session

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/deployctl/deployctl/internal/host/bundlecache"
	"github.com/deployctl/deployctl/internal/project/npmworkspace"
	"github.com/deployctl/deployctl/internal/project/pythonproject"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// installDependencies installs the packages that a Node or Python program and its dynamic providers import, unless the
// bundle contains them. If another bundle of the stack has installed the same packages on this worker, they are linked,
// so that an edited program or configuration does not wait for npm or pip. The packages stay in the bundle's directory;
// a lock makes sessions, also those of other processes, install one after another.
func (s *Session) installDependencies(ctx context.Context) error {
	if s.project == nil || !installable(s.project.Runtime.Name()) {
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
func (s *Session) packageDir() string {
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
func (s *Session) install(ctx context.Context) error {
	runtime := s.project.Runtime.Name()
	p, err := s.packagesOf(runtime)
	if err != nil || p == nil {
		return err
	}
	return s.installModules(ctx, *p, func(ctx context.Context) error {
		language, err := s.host.Language(ctx, runtime)
		if err != nil {
			return err
		}
		defer language.Close()
		return language.InstallDependencies(ctx, p.dir)
	})
}

// packagesOf describes the packages of the program; nil if nothing is installed.
func (s *Session) packagesOf(runtime string) (*packages, error) {
	if runtime == pythonproject.Runtime {
		return s.pythonPackages(pythonproject.Program{
			Root: s.root(), Dir: s.programDir(), Options: s.project.Runtime.Options(),
		})
	}
	dir := s.packageDir()
	if dir == "" {
		return nil, nil
	}
	return s.nodePackages(dir), nil
}

// installSource installs what a policy pack or a plugin imports whose source is in dir. Outside the bundle, that is
// part of the plugin's installation.
func (s *Session) installSource(
	ctx context.Context, dir string, source workspace.ProjectRuntimeInfo, install func(context.Context) error,
) error {
	runtime := source.Name()
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
	switch {
	case runtime == pythonproject.Runtime:
		p, err := s.pythonPackages(pythonproject.Program{Root: dir, Dir: dir, Options: source.Options()})
		if err != nil || p == nil {
			return err
		}
		return s.installModules(ctx, *p, install)
	case !npmworkspace.Runtime(runtime):
		return install(ctx)
	}
	if _, err := s.box.Stat(filepath.Join(dir, "package.json")); err != nil {
		return nil
	}
	return s.installModules(ctx, *s.nodePackages(dir), install)
}

// installModules creates the directory of packages, unless it exists and is complete.
func (s *Session) installModules(ctx context.Context, p packages, install func(context.Context) error) error {
	_, missing := s.box.Stat(p.probe)
	if missing == nil && !s.bundles.Incomplete(p.dir) && s.useModules(ctx, p.modules) {
		return nil
	}
	shared := s.bundles.SharedModules(s.update.Organization, p.key)
	if _, err := s.box.Stat(p.probe); err != nil {
		_ = s.inBundles(p.modules, (*os.Root).Remove) // it may be a link to a bundle that was removed
		if p.key != "" && s.linkModules(ctx, shared, p) {
			return nil
		}
	}
	if err := s.bundles.BeginInstall(p.dir); err != nil {
		return err
	}
	defer s.phases.begin("installing packages")()
	if err := install(ctx); err != nil {
		return err
	}
	if err := s.bundles.EndInstall(p.dir); err != nil {
		return err
	}
	if p.key != "" {
		// If this fails, other bundles install their own.
		_ = s.box.Do(func() error { return bundlecache.ShareModules(p.modules, shared) })
	}
	return nil
}

// linkModules links modules that another bundle has installed; false if there are none.
func (s *Session) linkModules(ctx context.Context, shared string, p packages) bool {
	there, err := s.box.RealPath(shared)
	link := func(bundles *os.Root, modules string) error { return bundles.Symlink(there, modules) }
	if err != nil || s.inBundles(p.modules, link) != nil {
		return false
	}
	if _, broken := s.box.Stat(p.probe); broken == nil && s.useModules(ctx, p.modules) {
		return true
	}
	_ = s.inBundles(p.modules, (*os.Root).Remove)
	return false
}

// inBundles runs a change inside the directory of bundles, which it cannot leave: a program may have replaced any
// directory of its bundle by a link.
func (s *Session) inBundles(path string, change func(bundles *os.Root, path string) error) error {
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
func (s *Session) useModules(ctx context.Context, modules string) bool {
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
	if _, err = s.box.Stat(real); err != nil {
		return false
	}
	s.showModules(real, modules)
	return true
}

// installPolicyPack installs the packages that a policy pack imports.
func (s *Session) installPolicyPack(ctx context.Context, dir string) error {
	runtime, err := s.host.PolicyPackRuntime(dir)
	if err != nil {
		return err
	}
	return s.installSource(ctx, dir, runtime, func(ctx context.Context) error {
		return s.host.InstallPolicyPack(ctx, dir)
	})
}
