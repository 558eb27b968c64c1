package activities

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// Compare asks a provider with a new configuration whether it can manage the resources of the old configuration, or
// they must be replaced.
func (a *Activities) Compare(ctx context.Context, in deployments.CompareInput) (engine.ProviderDiffed, error) {
	s, err := a.hosted(ctx, in.Update, in.Base)
	if err != nil {
		return engine.ProviderDiffed{}, failure.Of(err)
	}
	defer heartbeat.Start(ctx, a.Heart).Stop()

	result := engine.ProviderDiffed{Op: in.Compare.Op}
	err = retried(ctx, func() (err error) {
		result.Replace, err = s.providerReplaces(ctx, in.Compare.Old, in.Compare.New)
		return err
	})
	hide := s.redactor(ctx, in.Compare.Old.Inputs, in.Compare.New.Inputs)
	own, internal := failure.OfService(err)
	switch {
	case ctx.Err() != nil:
		return result, ctx.Err()
	case internal:
		return result, hide.Failure(own)
	case err != nil:
		result.Error = hide(pluginhost.ErrorText(err))
	}
	return result, nil
}

func (s *session) providerReplaces(ctx context.Context, old, new engine.Provider) (bool, error) {
	ref, err := token.ParseReference(new.Ref)
	if err != nil {
		return false, failure.Internal(deployments.Errorf(deployments.CodeInternal, "provider %q: %w", new.Ref, err))
	}
	var olds, news resource.PropertyMap
	if olds, err = s.values.Decode(ctx, old.Inputs); err != nil {
		return false, failure.Internal(err)
	}
	if news, err = s.values.Decode(ctx, new.Inputs); err != nil {
		return false, failure.Internal(err)
	}
	p, err := s.providers.provider(ctx, new.Ref, news, engine.Bag{})
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
