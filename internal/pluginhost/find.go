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

// MissingPluginError is the error of a plugin that is not installed, or not in the requested version.
type MissingPluginError struct {
	Kind    apitype.PluginKind
	Name    string
	Version string   // the requested version; empty: any
	Found   []string // other versions that are installed
	Dir     string   // where plugins are installed
	Server  string   // the download URL that the program names, or empty
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

// isMissing reports whether err is a MissingPluginError.
func isMissing(err error) bool {
	var missing *MissingPluginError
	return errors.As(err, &missing)
}

// finder finds the executables of plugins: first in the project's "plugins", then on PATH, then in the Pulumi home.
type finder struct {
	env     environment
	home    string
	root    string
	project *workspace.Project
	box     *sandbox.Box // in which the project's plugins are
}

// pluginName matches valid names of plugins; a valid name cannot lead to a path outside the plugin directories.
var pluginName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// find returns the path of a plugin's executable. The version applies only to the Pulumi home, where it must match
// exactly: a plugin on PATH or in the project is the user's choice. Without a version, find returns the newest.
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

// inProject returns the path of a plugin in the project's "plugins"; "" if it is not listed there.
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

// executable returns the path with the extension that the system needs; an error if it cannot be executed.
func executable(path string) (string, error) { return exec.LookPath(path) }
