package pluginhost

import (
	"encoding/hex"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// Request asks for the plugin of a package. What the program leaves open is completed with the "packages" of
// Pulumi.yaml.
func (h *Host) Request(pkg Package) plugins.Request { return h.finder.complete(pkg.request()) }

// complete sets what a request leaves open from an entry of "packages" with this plugin as its source.
func (f finder) complete(r plugins.Request) plugins.Request {
	if f.project == nil || r.Kind != apitype.ResourcePlugin {
		return r
	}
	for _, name := range slices.Sorted(maps.Keys(f.project.Packages)) {
		spec := f.project.Packages[name]
		version := strings.TrimPrefix(spec.Version, "v")
		if spec.Source != r.Name || version == "" || r.Version != "" && r.Version != version {
			continue
		}
		r.Version = version
		if r.URL == "" {
			r.URL = spec.PluginDownloadURL
		}
		for platform, sum := range spec.Checksums {
			if r.Sums[platform] == "" {
				r.Sums[platform] = hex.EncodeToString(sum)
			}
		}
		break
	}
	return r
}

// path returns the path of a plugin that the project names in "plugins", or by a path in "packages"; "" if it names
// none.
func (f finder) path(p plugins.Plugin) string {
	if f.project == nil {
		return ""
	}
	path := ""
	if spec := f.project.Packages[p.Name]; p.Kind == apitype.ResourcePlugin && isPath(spec.Source) {
		path = spec.Source
	}
	for _, o := range f.options(p.Kind) {
		if o.Name == p.Name {
			path = o.Path
			break
		}
	}
	if path != "" && !filepath.IsAbs(path) {
		path = filepath.Join(f.root, path)
	}
	return path
}

// options returns the entries of "plugins" for a kind.
func (f finder) options(kind apitype.PluginKind) []workspace.PluginOptions {
	if f.project.Plugins == nil {
		return nil
	}
	switch kind {
	case apitype.ResourcePlugin:
		return f.project.Plugins.Providers
	case apitype.LanguagePlugin:
		return f.project.Plugins.Languages
	case apitype.AnalyzerPlugin:
		return f.project.Plugins.Analyzers
	default:
		return nil
	}
}

// isPath reports whether the source of a package is a path, and not the name or the address of a plugin.
func isPath(source string) bool { return strings.HasPrefix(source, ".") || filepath.IsAbs(source) }
