package step

import (
	"context"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// openViews lets the provider publish steps of views during the attempt's next call. What an earlier call has published
// is dropped: only the call whose answer counts has published what counts.
func (at *attempt) openViews() *pluginhost.Views {
	if at.views != nil {
		at.views.Close()
	}
	at.views = at.session.host.OpenViews(at.step.Preview)
	return at.views
}

// oldViews returns the stored views of the step's resource, as a provider gets them.
func (at *attempt) oldViews(ctx context.Context) ([]plugin.View, error) {
	return compare.PluginViews(ctx, at.session.values, at.step.Views)
}

// publish puts the steps that were published during the last call into the result of the step.
func (at *attempt) publish(ctx context.Context, result engine.StepFinished) (engine.StepFinished, error) {
	if at.views == nil {
		return result, nil
	}
	var err error
	encode := func(values resource.PropertyMap, inline int) (engine.Bag, error) {
		return at.keepWithin(ctx, values, inline)
	}
	result.Views, err = compare.ViewSteps(at.views.Close(), encode)
	return result, err
}
