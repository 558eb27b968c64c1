package pluginhost

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/blang/semver"
	"github.com/deployctl/deployctl/internal/pluginhost/process"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// MissingPluginError says that a plugin is not installed, or not in the version that is asked for.
type MissingPluginError struct {
	Kind    apitype.PluginKind
	Name    string
	Version string   // asked for; empty: any
	Found   []string // other versions that are installed
	Dir     string   // where plugins are installed
	Server  string   // where the program says it is to be had, or empty
}

func (e *MissingPluginError) Error() string {
	kind := "provider plugin"
	if e.Kind == apitype.LanguagePlugin {
		kind = "language host"
	}
	what := fmt.Sprintf("pulumi-%s-%s", e.Kind, e.Name)
	if e.Version != "" {
		what += " v" + e.Version
	}
	found := ""
	if len(e.Found) > 0 {
		found = " (found there: v" + strings.Join(e.Found, ", v") + ")"
	}
	dir := fmt.Sprintf("%s-%s", e.Kind, e.Name)
	if e.Version != "" {
		dir += "-v" + e.Version
	}
	install := strings.TrimSpace(fmt.Sprintf("pulumi plugin install %s %s %s", e.Kind, e.Name, e.Version))
	if e.Server != "" {
		install += " --server " + e.Server
	}
	return fmt.Sprintf("%s %s was not found on PATH or in %s%s; unpack its release there as %s, or, with Pulumi's "+
		"command line, run `%s`",
		kind, what, e.Dir, found, dir, install)
}

// isMissing tells whether nothing at all of the plugin is installed.
func isMissing(err error) bool {
	var missing *MissingPluginError
	return errors.As(err, &missing)
}

// finder looks for the executables of plugins: in the project's "plugins", on PATH, in the Pulumi home, in this order.
type finder struct {
	env     environment
	home    string
	root    string
	project *workspace.Project
	box     *sandbox.Box // that the project's plugins are in
}

// pluginName is what a plugin can be called: a name that leads nowhere else than to a plugin.
var pluginName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// find returns the path of a plugin's executable. The version counts in the Pulumi home only, and there exactly: what
// is on PATH or in the project was put there by the user, to be used. Without a version it is the newest.
func (f finder) find(kind apitype.PluginKind, name, version string) (string, error) {
	if !pluginName.MatchString(name) {
		return "", fmt.Errorf("%q is not the name of a %s plugin: those have letters, digits, '-', '_' and '.'", name,
			kind)
	}
	if path, err := f.inProject(kind, name); path != "" || err != nil {
		return path, err
	}
	file := fmt.Sprintf("pulumi-%s-%s", kind, name)
	if path, err := process.Look(f.env, file); err == nil {
		return path, nil
	}

	dir := filepath.Join(f.home, "plugins")
	installed, err := workspace.GetPluginsFromDir(dir)
	if err != nil {
		return "", fmt.Errorf("listing installed plugins: %w", err)
	}
	missing := &MissingPluginError{Kind: kind, Name: name, Version: version, Dir: dir}
	var best *workspace.PluginInfo
	for _, p := range installed {
		if p.Kind != kind || p.Name != name || p.Version == nil {
			continue
		}
		if wanted(p.Version, version) && (best == nil || best.Version.LT(*p.Version)) {
			best = &p
		}
		missing.Found = append(missing.Found, p.Version.String())
	}
	if best == nil {
		return "", missing
	}
	path, err := executable(filepath.Join(best.Path, file))
	if err != nil {
		return "", fmt.Errorf("%s v%s is installed, but cannot be run: %w", file, best.Version, err)
	}
	return path, nil
}

func wanted(version *semver.Version, asked string) bool {
	if asked == "" {
		return true
	}
	want, err := semver.ParseTolerant(asked)
	return err == nil && version.EQ(want)
}

// inProject is the path that the project's "plugins" give for a plugin, or empty.
func (f finder) inProject(kind apitype.PluginKind, name string) (string, error) {
	if f.project == nil || f.project.Plugins == nil {
		return "", nil
	}
	options := f.project.Plugins.Providers
	if kind == apitype.LanguagePlugin {
		options = f.project.Plugins.Languages
	}
	for _, o := range options {
		if o.Name != name {
			continue
		}
		path := o.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(f.root, path)
		}
		if info, err := f.box.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, fmt.Sprintf("pulumi-%s-%s", kind, name))
		}
		found, err := executable(path)
		if err != nil {
			return "", fmt.Errorf("plugins in Pulumi.yaml, %s: %w", name, err)
		}
		return found, nil
	}
	return "", nil
}

// executable is the path with the extension that the system wants, if it can be run.
func executable(path string) (string, error) { return exec.LookPath(path) }
