package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/blang/semver"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// MissingPluginError is the error of a plugin that is not installed, or not in the requested version.
type MissingPluginError struct {
	plugins.Request
	Found    []string // other versions that are installed
	Dir      string   // where plugins are installed
	Hidden   bool     // Dir cannot be read by programs
	Download error    // why it could not be downloaded; nil: nothing is downloaded
}

func (e *MissingPluginError) Error() string {
	found := ""
	if len(e.Found) > 0 {
		found = " (found there: v" + strings.Join(e.Found, ", v") + ")"
	}
	if e.Hidden {
		found = " (which the user of programs may not read: see run-as in docs/sandbox.md)"
	}
	download := "downloads are switched off (the setting plugins.download of the service)"
	if e.Download != nil {
		download = e.Download.Error()
	}
	if runtime := plugins.MeantRuntime(e.Name); e.Kind == apitype.LanguagePlugin && runtime != "" {
		return fmt.Sprintf("%s is not installed: did you mean `runtime: %s`? A host of another name is looked for on PATH "+
			"and in %s", e.Plugin, runtime, e.Dir)
	}
	if e.Kind == apitype.LanguagePlugin && e.URL == "" {
		return fmt.Sprintf("%s is not installed: it was not found on PATH or in %s%s, and %s; put it on the PATH of the "+
			"machine where programs run: a release of the stock CLI has those of yaml, dotnet and java, and those of "+
			"nodejs, bun, go and python are part of deployctl", e.Plugin, e.Dir, found, download)
	}
	install := strings.TrimSpace(fmt.Sprintf("deployctl plugin install %s %s %s", e.Kind, e.Name, e.Version))
	if e.URL != "" {
		install += " --server " + e.URL
	}
	return fmt.Sprintf("%s is not installed: it was not found on PATH or in %s%s, and %s; to install it there, run `%s` "+
		"or unpack its release as %s", e.Plugin, e.Dir, found, download, install, e.Plugin.Dir())
}

// Unwrap returns why the plugin could not be downloaded.
func (e *MissingPluginError) Unwrap() error { return e.Download }

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

// locate returns the path of a plugin's executable. A plugin that is not installed is fetched.
func (h *Host) locate(ctx context.Context, r plugins.Request) (string, error) {
	path, err := h.finder.find(r)
	var missing *MissingPluginError
	if h.opts.Fetch == nil || !errors.As(err, &missing) ||
		r.Kind == apitype.LanguagePlugin && plugins.MeantRuntime(r.Name) != "" { // nobody asks for a mistake from elsewhere
		return path, err
	}
	dir, err := h.opts.Fetch(ctx, r)
	if err != nil {
		missing.Download = err
		return "", missing
	}
	path, err = runnable(h.opts.Box, dir, r.Plugin)
	if err != nil {
		return "", fmt.Errorf("%s was downloaded, but cannot be run: %w", r.Plugin, err)
	}
	return path, nil
}

// find returns the path of a plugin's executable. The version applies only to the Pulumi home, where it must match
// exactly: a plugin on PATH or in the project is the user's choice. Without a version, find returns the newest.
func (f finder) find(r plugins.Request) (string, error) {
	r, err := r.Normalized()
	if err != nil {
		return "", err
	}
	if path, err := f.inProject(r.Plugin); path != "" || err != nil {
		return path, err
	}
	file := r.File()
	if path, err := process.Look(f.box, f.env, file); err == nil {
		return path, nil
	}

	dir := filepath.Join(f.home, "plugins")
	installed, err := f.installed(dir, r.Plugin)
	hidden := errors.Is(err, fs.ErrPermission) // with run-as, of the worker's user
	if err != nil && !hidden {
		return "", fmt.Errorf("listing installed plugins: %w", err)
	}
	missing := &MissingPluginError{Request: r, Dir: dir, Hidden: hidden}
	var best *installedPlugin
	for _, p := range installed {
		if wanted(&p.version, r.Version) && (best == nil || best.version.LT(p.version)) {
			best = &p
		}
		missing.Found = append(missing.Found, p.version.String())
	}
	if best == nil {
		return "", missing
	}
	path, err := runnable(f.box, best.path, r.Plugin)
	if err != nil {
		return "", fmt.Errorf("%s v%s is installed, but cannot be run: %w", file, best.version, err)
	}
	return path, nil
}

// mostInstalled bounds the entries of a directory of plugins. It may be a program's, which can put any number there.
const mostInstalled = 10_000

// installedPlugin is a directory of a plugin.
type installedPlugin struct {
	path    string
	version semver.Version
}

// installed returns the versions of a plugin in a directory, as the stock CLI installs them, that programs can see. A
// directory that does not exist has none.
func (f finder) installed(dir string, p plugins.Plugin) (found []installedPlugin, err error) {
	entries, err := f.box.ReadDir(dir, mostInstalled)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	partial := map[string]bool{}
	for _, e := range entries {
		partial[strings.TrimSuffix(e.Name(), ".partial")] = strings.HasSuffix(e.Name(), ".partial")
	}
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), string(p.Kind)+"-"+p.Name+"-v")
		if !ok || !e.IsDir() || partial[e.Name()] || installing.MatchString(text) {
			continue
		}
		if version, err := semver.ParseTolerant(text); err == nil {
			found = append(found, installedPlugin{filepath.Join(dir, e.Name()), version})
		}
	}
	return found, err
}

// installing is how the stock CLI names the directory of a plugin until it is installed.
var installing = regexp.MustCompile(`\.tmp[0-9]+$`)

func wanted(version *semver.Version, asked string) bool {
	if asked == "" {
		return true
	}
	want, err := semver.ParseTolerant(asked)
	return err == nil && version.EQ(want)
}

// inProject returns the path of a plugin that the project names; "" if it names none.
func (f finder) inProject(p plugins.Plugin) (string, error) {
	path := f.path(p)
	if path == "" {
		return "", nil
	}
	found := ""
	info, err := f.box.Stat(path)
	if err == nil && info.IsDir() {
		if found, err = runnable(f.box, path, p); err != nil {
			err = fmt.Errorf("the directory %s has neither %s nor %s: %w", path, p.File(), plugins.SourceFile, err)
		}
	} else {
		found, err = f.box.Executable(path)
	}
	if err != nil {
		return "", fmt.Errorf("plugins in Pulumi.yaml, %s: %w", p.Name, err)
	}
	return found, nil
}

// runnable returns the path of what runs a plugin in its directory: its executable or, of a provider that is source
// code, its PulumiPlugin.yaml.
func runnable(box *sandbox.Box, dir string, p plugins.Plugin) (string, error) {
	path, err := box.Executable(filepath.Join(dir, p.File()))
	if err == nil || p.Kind != apitype.ResourcePlugin {
		return path, err
	}
	source := filepath.Join(dir, plugins.SourceFile)
	if _, missing := box.Stat(source); missing == nil {
		return source, nil
	}
	return "", err
}

// Chosen reports whether the user has put a plugin into the project or on PATH, so that none is installed for it.
func (h *Host) Chosen(r plugins.Request) bool {
	path, err := h.finder.find(r)
	if err != nil {
		return false
	}
	below, err := filepath.Rel(filepath.Join(h.finder.home, "plugins"), path)
	return err != nil || !filepath.IsLocal(below)
}
