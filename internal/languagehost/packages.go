package languagehost

import (
	"maps"
	"slices"
	"strings"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// pluginManifest is what a library says about the provider it needs: "pulumi" in package.json, or pulumi-plugin.json.
type pluginManifest struct {
	Resource         bool // whether there is one
	Name             string
	Version          string
	Server           string
	Parameterization *manifestParameter
	// ExtensionParameterization: the library is an extension of the provider's package.
	ExtensionParameterization *manifestParameter
}

// manifestParameter is what a library has its provider given.
type manifestParameter struct {
	Name    string
	Version string
	Value   []byte
}

func (q *manifestParameter) message() *pulumirpc.PackageParameterization {
	return &pulumirpc.PackageParameterization{Name: q.Name, Version: q.Version, Value: q.Value}
}

// dependencySet are the packages found so far, each once per version.
type dependencySet map[string]*pulumirpc.PackageDependency

// add takes what the library does not say about its provider from the library itself.
func (s dependencySet) add(m *pluginManifest, name, version string) {
	if !m.Resource {
		return
	}
	if m.Name != "" {
		name = m.Name
	}
	if m.Version != "" {
		version = m.Version
	}
	p := &pulumirpc.PackageDependency{
		Name: name, Kind: "resource", Version: strings.TrimPrefix(version, "v"), Server: m.Server,
	}
	key := name + "@" + p.GetVersion()
	if q := m.Parameterization; q != nil {
		p.Parameterization = q.message()
		key += "/" + q.Name + "@" + q.Version
	}
	if q := m.ExtensionParameterization; q != nil {
		p.Extension = q.message()
		key += "+" + q.Name + "@" + q.Version
	}
	s[key] = p
}

func (s dependencySet) sorted() []*pulumirpc.PackageDependency {
	var all []*pulumirpc.PackageDependency
	for _, key := range slices.Sorted(maps.Keys(s)) {
		all = append(all, s[key])
	}
	return all
}
