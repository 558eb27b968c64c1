// Package plugins downloads the plugins that a machine lacks, and pins what it downloads.
//
// An archive comes from the plugin's own download address, from where the stock CLI looks (GitHub releases, then
// get.pulumi.com), or from a mirror. A program chooses the address, so every server is taken for hostile: Network
// limits which servers are asked, for how long and for how much, and unpack limits what an archive may contain. An
// archive is identified by its SHA-256 digest. The project's lock file, the checksums of the request, and the first
// download of the organization decide which digest is accepted.
package plugins

import (
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"strings"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Plugin names a plugin.
type Plugin struct {
	Kind    apitype.PluginKind
	Name    string
	Version string // without "v"; empty: none was asked for
}

// File returns the name of the plugin's executable, without the extension that Windows needs.
func (p Plugin) File() string { return fmt.Sprintf("pulumi-%s-%s", p.Kind, p.Name) }

// Dir returns the name of the plugin's directory among installed plugins.
func (p Plugin) Dir() string {
	dir := fmt.Sprintf("%s-%s", p.Kind, p.Name)
	if p.Version != "" {
		dir += "-v" + p.Version
	}
	return dir
}

// String describes the plugin in messages.
func (p Plugin) String() string {
	what := fmt.Sprintf("%s plugin", p.Kind)
	switch p.Kind {
	case apitype.ResourcePlugin:
		what = "provider plugin"
	case apitype.LanguagePlugin:
		what = "language host"
	case apitype.AnalyzerPlugin:
		what = "policy plugin"
	default:
	}
	what += " " + p.File()
	if p.Version != "" {
		what += " v" + p.Version
	}
	return what
}

// nameForm matches valid names of plugins; a valid name cannot lead to a path outside the plugin directories.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Validate returns an error if the plugin cannot exist.
func (p Plugin) Validate() error {
	if !apitype.IsPluginKind(string(p.Kind)) {
		return fmt.Errorf("%q is not a kind of plugins: use resource, language, analyzer, converter or tool", p.Kind)
	}
	if !nameForm.MatchString(p.Name) {
		return fmt.Errorf("%q is not the name of a %s plugin: those have letters, digits, '-', '_' and '.'", p.Name,
			p.Kind)
	}
	if p.Version == "" {
		return nil
	}
	if _, err := semver.Parse(p.Version); err != nil {
		return fmt.Errorf("the version of %s: %w", p.File(), err)
	}
	return nil
}

// Request asks for a plugin.
type Request struct {
	Plugin
	URL  string            // the download address that the program names; empty: where the stock CLI looks
	Sums map[string]string // accepted digests of the archive, by platform, in hexadecimal digits
}

// Normalized returns the request with its version and address in one form.
func (r Request) Normalized() (Request, error) {
	if r.Version != "" {
		version, err := semver.ParseTolerant(r.Version)
		if err != nil {
			return r, fmt.Errorf("the version %q of %s: %w", r.Version, r.File(), err)
		}
		r.Version = version.String()
	}
	r.URL = strings.TrimSuffix(r.URL, "/")
	r.Sums = maps.Clone(r.Sums)
	return r, r.Validate()
}

// Platform is a system for which plugins are built, as "linux-amd64".
type Platform string

// Here is the platform of this process.
const Here = Platform(runtime.GOOS + "-" + runtime.GOARCH)

// platforms are those for which plugins are released.
var platforms = []Platform{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64", "windows-amd64",
	"windows-arm64"}

func (p Platform) split() (system, arch string) {
	system, arch, _ = strings.Cut(string(p), "-")
	return system, arch
}
