package activities

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/deployctl/deployctl/internal/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Where a provider resource's inputs hold what is for the engine and not for the provider. These are the names that the
// ecosystem's checkpoints have.
const (
	internalKey       resource.PropertyKey = "__internal"
	versionKey        resource.PropertyKey = "version"
	envVarMappingsKey resource.PropertyKey = "envVarMappings"
)

// settings are a provider resource's inputs as its provider sees them.
func settings(inputs resource.PropertyMap) resource.PropertyMap {
	filtered := make(resource.PropertyMap, len(inputs))
	for k, v := range inputs {
		if k != internalKey {
			filtered[k] = v
		}
	}
	return filtered
}

// packageOf reads from a provider resource's type and inputs which plugin serves it.
func packageOf(t tokens.Type, inputs resource.PropertyMap) (pluginhost.Package, error) {
	provides := string(token.ProviderPackage(t))
	internal := inputs // where older checkpoints have it
	if v := inputs[internalKey]; v.IsObject() {
		internal = v.ObjectValue()
	}
	text := func(m resource.PropertyMap, key resource.PropertyKey) string {
		if v := m[key]; v.IsString() {
			return v.StringValue()
		}
		return ""
	}
	pkg := pluginhost.Package{
		Name: provides, Version: text(inputs, versionKey), DownloadURL: text(internal, "pluginDownloadURL"),
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
	pkg.Parameter = &pluginhost.Parameter{Name: provides, Version: pkg.Version, Value: value}
	pkg.Version = text(internal, versionKey)
	if name := text(internal, "name"); name != "" {
		pkg.Name = name
	}
	return pkg, nil
}

// configurator is the provider of provider resources: creating one is configuring it.
type configurator struct{ session *session }

// Check checks a provider's configuration.
func (c configurator) Check(ctx context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	p, err := c.session.unconfigured(ctx, req.URN.Type(), req.News)
	if err != nil {
		return plugin.CheckResponse{}, err
	}
	resp, err := p.CheckConfig(ctx, plugin.CheckConfigRequest{
		URN: req.URN, Name: req.Name, Type: req.Type, Olds: settings(req.Olds), News: settings(req.News),
		AllowUnknowns: true,
	})
	if err != nil || len(resp.Failures) > 0 {
		return plugin.CheckResponse{Failures: resp.Failures}, err
	}
	checked := settings(resp.Properties)
	if version, ok := req.News[versionKey]; ok {
		if v, has := checked[versionKey]; has && !v.DeepEquals(version) {
			return plugin.CheckResponse{}, fmt.Errorf("provider %s changed its version from %v to %v", req.URN, version,
				v)
		}
		checked[versionKey] = version
	}
	if internal, ok := req.News[internalKey]; ok {
		checked[internalKey] = internal
	}
	return plugin.CheckResponse{Properties: checked}, nil
}

// Diff compares configurations; what the provider has no opinion on is a change if it is not equal.
func (c configurator) Diff(ctx context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	p, err := c.session.unconfigured(ctx, req.URN.Type(), req.NewInputs)
	if err != nil {
		return plugin.DiffResult{}, err
	}
	news := settings(req.NewInputs)
	d, err := p.DiffConfig(ctx, plugin.DiffConfigRequest{
		URN: req.URN, Name: req.Name, Type: req.Type, OldInputs: settings(req.OldInputs),
		OldOutputs: settings(req.OldOutputs),
		NewInputs:  news, AllowUnknowns: true, IgnoreChanges: req.IgnoreChanges,
	})
	if err != nil || d.Changes != plugin.DiffUnknown {
		return d, err
	}
	d.Changes = plugin.DiffSome
	if settings(req.OldOutputs).DeepEquals(news) {
		d.Changes = plugin.DiffNone
	}
	return d, nil
}

// Create previews the creation of a provider; see engine.ProviderID about the real one.
func (c configurator) Create(_ context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	return plugin.CreateResponse{ID: providers.UnknownID, Properties: settings(req.Properties)}, nil
}

// Update previews a change of a provider's configuration.
func (c configurator) Update(_ context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	return plugin.UpdateResponse{Properties: settings(req.NewInputs)}, nil
}
