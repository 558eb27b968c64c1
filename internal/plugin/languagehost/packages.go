package languagehost

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/proto"
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

// What a program's libraries may ask for at most: each is kept, and starts a process.
const (
	mostDependencies   = 1000
	maxDependencyBytes = 64 << 20
)

// dependencySet are the packages found so far, each once per version.
type dependencySet struct {
	all   map[string]*pulumirpc.PackageDependency
	bytes int
}

// add takes what the library does not say about its provider from the library itself. It fails if there are too many.
func (s *dependencySet) add(m *pluginManifest, name, version string) error {
	if !m.Resource {
		return nil
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
	if s.all == nil {
		s.all = map[string]*pulumirpc.PackageDependency{}
	}
	s.bytes += proto.Size(p) - proto.Size(s.all[key])
	s.all[key] = p
	if len(s.all) > mostDependencies || s.bytes > maxDependencyBytes {
		return fmt.Errorf("the libraries of the program need more than %d packages of resources, or such of more than %d "+
			"MiB: take some out", mostDependencies, maxDependencyBytes>>20)
	}
	return nil
}

func (s *dependencySet) sorted() []*pulumirpc.PackageDependency {
	var all []*pulumirpc.PackageDependency
	for _, key := range slices.Sorted(maps.Keys(s.all)) {
		all = append(all, s.all[key])
	}
	return all
}
