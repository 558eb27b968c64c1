package compare

import (
	"context"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// viewValues bounds, in bytes, the values of published views that travel inline with a result; the rest are blobs.
const viewValues = 256 << 10

// PluginViews returns stored views as a provider gets them. The parent is named if it is not the owner.
func PluginViews(ctx context.Context, codec *bags.Codec, states []engine.State) ([]plugin.View, error) {
	views := make([]plugin.View, len(states))
	for i, state := range states {
		v := plugin.View{Type: state.Type, Name: snapshot.NameOf(state.URN)}
		if state.Parent != state.ViewOf && token.ValidURN(state.Parent) {
			v.ParentType, v.ParentName = state.Parent.Type(), state.Parent.Name()
		}
		var err error
		if v.Inputs, err = codec.Decode(ctx, state.Inputs); err != nil {
			return nil, failure.Internal(err)
		}
		if v.Outputs, err = codec.Decode(ctx, state.Outputs); err != nil {
			return nil, failure.Internal(err)
		}
		views[i] = v
	}
	return views, nil
}

// ViewSteps returns published steps as the core gets them. Old states only name a view: the core has their values.
func ViewSteps(
	published []pluginhost.ViewStep, encode func(values resource.PropertyMap, inline int) (engine.Bag, error),
) ([]engine.ViewStep, error) {
	inline := min(bags.InlineLimit, viewValues/(1+2*len(published)))
	var steps []engine.ViewStep
	for _, s := range published {
		step := engine.ViewStep{Kind: engine.StepKind(s.Op), Error: s.Error, Partial: s.Partial, Diff: viewDiff(s)}
		if s.Old != nil {
			step.Old = &engine.View{Type: s.Old.Type, Name: s.Old.Name}
		}
		if s.New != nil {
			v := engine.View{Type: s.New.Type, Name: s.New.Name, ParentType: s.New.ParentType, ParentName: s.New.ParentName}
			var err error
			if v.Inputs, err = encode(properties.WithoutOutputs(s.New.Inputs), inline); err != nil {
				return nil, err
			}
			if v.Outputs, err = encode(properties.WithoutOutputs(s.New.Outputs), inline); err != nil {
				return nil, err
			}
			step.New = &v
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// viewDiff returns the difference that a published step names; nil if it names none.
func viewDiff(s pluginhost.ViewStep) *engine.Diff {
	if len(s.Keys)+len(s.Diffs)+len(s.Detailed) == 0 {
		return nil
	}
	d := DiffOf(plugin.DiffResult{Changes: plugin.DiffSome, DetailedDiff: s.Detailed})
	d.ReplaceKeys, d.ChangedKeys = s.Keys, s.Diffs
	if len(s.Keys) > 0 {
		d.Change = engine.ChangeReplace
	}
	return &d
}
