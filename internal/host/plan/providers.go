package plan

import (
	"context"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
)

// Compare asks a provider with a new configuration whether it can manage the resources of the old one.
func (s *Plans) Compare(ctx context.Context, ask engine.Compare) (engine.ProviderDiffed, error) {
	result := engine.ProviderDiffed{Op: ask.Op}
	err := hosted.Retried(ctx, func() (err error) {
		result.Replace, err = compare.ProviderReplaces(ctx, s.facts, ask.Old, ask.New)
		return err
	})
	hide := s.host.Redactor(ctx, ask.Old.Inputs, ask.New.Inputs)
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
