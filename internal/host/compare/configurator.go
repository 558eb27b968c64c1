package compare

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// configurator is the provider of provider resources: to create one is to configure a plugin.
type configurator struct{ of *hosted.Update }

// Configurator returns the provider of the provider resources of an update.
func Configurator(of *hosted.Update) Provider { return configurator{of} }

// Check checks a provider's configuration.
func (c configurator) Check(ctx context.Context, req plugin.CheckRequest) (plugin.CheckResponse, error) {
	p, err := c.of.Providers.Unconfigured(ctx, req.URN.Type(), req.News)
	if err != nil {
		return plugin.CheckResponse{}, err
	}
	resp, err := p.CheckConfig(ctx, plugin.CheckConfigRequest{
		URN: req.URN, Name: req.Name, Type: req.Type, Olds: pluginhost.ProviderConfig(req.Olds),
		News:          pluginhost.ProviderConfig(req.News),
		AllowUnknowns: true,
	})
	if err != nil || len(resp.Failures) > 0 {
		return plugin.CheckResponse{Failures: resp.Failures}, err
	}
	if _, ok := resp.Properties[pluginhost.InternalKey]; ok {
		c.of.Host.Tell(diag.Warning, req.URN, fmt.Sprintf("the provider's configuration has the key %s, which is "+
			"reserved; it is left out", pluginhost.InternalKey))
	}
	checked := pluginhost.ProviderConfig(resp.Properties)
	if version, ok := req.News[pluginhost.VersionKey]; ok {
		if v, has := checked[pluginhost.VersionKey]; has && !v.DeepEquals(version) {
			return plugin.CheckResponse{}, fmt.Errorf("provider %s changed its version from %v to %v", req.URN,
				version.V, v.V)
		}
		checked[pluginhost.VersionKey] = version
	}
	if internal, ok := req.News[pluginhost.InternalKey]; ok {
		checked[pluginhost.InternalKey] = internal
	}
	return plugin.CheckResponse{Properties: checked}, nil
}

// Diff compares configurations. If the provider cannot say, any inequality is a change.
func (c configurator) Diff(ctx context.Context, req plugin.DiffRequest) (plugin.DiffResponse, error) {
	p, err := c.of.Providers.Unconfigured(ctx, req.URN.Type(), req.NewInputs)
	if err != nil {
		return plugin.DiffResult{}, err
	}
	news := pluginhost.ProviderConfig(req.NewInputs)
	d, err := p.DiffConfig(ctx, plugin.DiffConfigRequest{
		URN: req.URN, Name: req.Name, Type: req.Type, OldInputs: pluginhost.ProviderConfig(req.OldInputs),
		OldOutputs: pluginhost.ProviderConfig(req.OldOutputs),
		NewInputs:  news, AllowUnknowns: true, IgnoreChanges: req.IgnoreChanges,
	})
	if err != nil || d.Changes != plugin.DiffUnknown {
		return d, err
	}
	d.Changes = plugin.DiffSome
	if revealed(pluginhost.ProviderConfig(req.OldOutputs)).DeepEquals(revealed(news)) {
		d.Changes = plugin.DiffNone
	}
	return d, nil
}

// Create previews the creation of a provider resource; a real one gets its id from engine.ProviderID.
func (c configurator) Create(_ context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	return plugin.CreateResponse{ID: providers.UnknownID, Properties: pluginhost.ProviderConfig(req.Properties)}, nil
}

// Update previews a change of a provider's configuration.
func (c configurator) Update(_ context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	return plugin.UpdateResponse{Properties: pluginhost.ProviderConfig(req.NewInputs)}, nil
}

// ProviderReplaces asks a provider with a new configuration whether resources of the old one must be replaced.
func ProviderReplaces(ctx context.Context, u *hosted.Update, old, new engine.Provider) (bool, error) {
	ref, err := token.ParseReference(new.Ref)
	if err != nil {
		return false, failure.Internal(deployments.Errorf(deployments.CodeInternal, "provider %q: %w", new.Ref, err))
	}
	var olds, news resource.PropertyMap
	if olds, err = u.Values.Decode(ctx, old.Inputs); err != nil {
		return false, failure.Internal(err)
	}
	if news, err = u.Values.Decode(ctx, new.Inputs); err != nil {
		return false, failure.Internal(err)
	}
	p, err := u.Providers.Configured(ctx, new.Ref, news, engine.Bag{})
	if err != nil {
		return false, err
	}
	d, err := p.DiffConfig(ctx, plugin.DiffConfigRequest{
		URN: ref.URN(), Name: ref.URN().Name(), Type: ref.URN().Type(),
		OldInputs: pluginhost.ProviderConfig(olds), OldOutputs: pluginhost.ProviderConfig(olds),
		NewInputs: pluginhost.ProviderConfig(news), AllowUnknowns: true,
	})
	return d.Replace(), err
}
