package pluginhost

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// The keys of a provider resource's inputs that are for the engine and not for the provider, as Pulumi's checkpoints
// name them.
const (
	// InternalKey holds the values that only the engine reads.
	InternalKey resource.PropertyKey = "__internal"
	// VersionKey holds the version of the plugin, or of the parameterised package.
	VersionKey        resource.PropertyKey = "version"
	envVarMappingsKey resource.PropertyKey = "envVarMappings"
)

// ProviderConfig returns the part of a provider resource's inputs that its provider receives.
func ProviderConfig(inputs resource.PropertyMap) resource.PropertyMap {
	filtered := make(resource.PropertyMap, len(inputs))
	for k, v := range inputs {
		if k != InternalKey {
			filtered[k] = v
		}
	}
	return filtered
}

// PackageOf returns the package of the plugin that serves a provider resource, from the resource's type and inputs.
func PackageOf(t tokens.Type, inputs resource.PropertyMap) (Package, error) {
	provides := string(token.ProviderPackage(t))
	internal := inputs // older checkpoints have these keys at the top level
	if v := inputs[InternalKey]; v.IsObject() {
		internal = v.ObjectValue()
	}
	text := func(m resource.PropertyMap, key resource.PropertyKey) string {
		if v := m[key]; v.IsString() {
			return v.StringValue()
		}
		return ""
	}
	pkg := Package{
		Name: provides, Version: text(inputs, VersionKey), DownloadURL: text(internal, "pluginDownloadURL"),
	}
	if sums := internal["pluginChecksums"]; sums.IsObject() {
		pkg.Checksums = map[string][]byte{}
		for platform := range sums.ObjectValue() {
			sum, err := hex.DecodeString(text(sums.ObjectValue(), platform))
			if err != nil {
				return pkg, fmt.Errorf("provider %s: its checksum for %s: %w", provides, platform, err)
			}
			pkg.Checksums[string(platform)] = sum
		}
	}
	if names := internal[envVarMappingsKey]; names.IsObject() {
		pkg.Env = map[string]string{}
		for from := range names.ObjectValue() {
			pkg.Env[string(from)] = text(names.ObjectValue(), from)
		}
	}
	parameter, ok := internal["parameterization"]
	if !ok {
		return pkg, nil
	}
	if !parameter.IsString() {
		return pkg, fmt.Errorf("provider %s: its parameterization is not a string", provides)
	}
	value, err := base64.StdEncoding.DecodeString(parameter.StringValue())
	if err != nil {
		return pkg, fmt.Errorf("provider %s: its parameterization: %w", provides, err)
	}
	pkg.Parameter = &Parameter{Name: provides, Version: pkg.Version, Value: value}
	pkg.Version = text(internal, VersionKey)
	if name := text(internal, "name"); name != "" {
		pkg.Name = name
	}
	return pkg, nil
}

// PutInto writes the package and the plugin's checksums into a provider resource's inputs, under the keys of Pulumi's
// checkpoints. PackageOf reads them.
func (p Package) PutInto(inputs resource.PropertyMap, checksums map[string][]byte) {
	internal := resource.PropertyMap{}
	if v := inputs[InternalKey]; v.IsObject() {
		internal = v.ObjectValue()
	}
	used := len(internal) > 0
	if p.Version != "" {
		inputs[VersionKey], used = resource.NewProperty(p.Version), true
	}
	if p.DownloadURL != "" {
		internal["pluginDownloadURL"], used = resource.NewProperty(p.DownloadURL), true
	}
	if checksums != nil {
		sums := resource.PropertyMap{}
		for platform, sum := range checksums {
			sums[resource.PropertyKey(platform)] = resource.NewProperty(hex.EncodeToString(sum))
		}
		internal["pluginChecksums"], used = resource.NewProperty(sums), true
	}
	if len(p.Env) > 0 {
		names := resource.PropertyMap{}
		for from, to := range p.Env {
			names[resource.PropertyKey(from)] = resource.NewProperty(to)
		}
		internal[envVarMappingsKey], used = resource.NewProperty(names), true
	}
	if p.Parameter != nil {
		internal["name"], used = resource.NewProperty(p.Name), true
		if p.Version != "" {
			internal[VersionKey] = resource.NewProperty(p.Version)
		}
		inputs[VersionKey] = resource.NewProperty(p.Parameter.Version)
		internal["parameterization"] = resource.NewProperty(base64.StdEncoding.EncodeToString(p.Parameter.Value))
	}
	if used {
		inputs[InternalKey] = resource.NewProperty(internal)
	}
}
