package statestore

import (
	"slices"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Plugin names a package and the version of its plugin; empty if not known.
type Plugin struct{ Package, Version string }

// PackagesWithoutProvider returns, sorted, the packages of resources and pending operations that name no provider. See
// engine.Goal.Defaults.
func (c *Checkpoint) PackagesWithoutProvider() []Plugin {
	var out []Plugin
	add := func(s *engine.State) {
		pkg, needs := s.NeedsProvider()
		if !needs || slices.ContainsFunc(out, func(p Plugin) bool { return p.Package == pkg }) {
			return
		}
		out = append(out, Plugin{Package: pkg, Version: c.pluginVersion(pkg)})
	}
	for i := range c.states {
		add(&c.states[i])
	}
	for i := range c.pending {
		add(&c.pending[i].State)
	}
	slices.SortFunc(out, func(a, b Plugin) int {
		if a.Package < b.Package {
			return -1
		}
		return 1
	})
	return out
}

// pluginVersion returns the version of a resource plugin in the manifest.
func (c *Checkpoint) pluginVersion(pkg string) string {
	for _, p := range c.file.Deployment.Manifest.Plugins {
		if p.Name == pkg && p.Type == apitype.ResourcePlugin {
			return p.Version
		}
	}
	return ""
}
