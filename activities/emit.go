package activities

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// blinded stands in for every secret that people would see.
const blinded = redaction.Blinded

// decoder gives the values of bags.
type decoder interface {
	Decode(ctx context.Context, bag engine.Bag) (resource.PropertyMap, error)
}

// telling turns what the core emits into events as the field's displays know them.
type telling struct {
	values  decoder
	preview bool
	now     time.Time
}

func (t telling) events(ctx context.Context, emits []engine.Emit) ([]deployments.WatchEvent, error) {
	var events []deployments.WatchEvent
	for _, e := range emits {
		if e.Kind == engine.EmitPre && e.Step == engine.StepSame {
			continue // an unchanged resource is told of once: there may be very many
		}
		event, err := t.event(ctx, e)
		if err != nil {
			return nil, err
		}
		events = append(events, deployments.WatchEvent{Event: &event})
	}
	return events, nil
}

func (t telling) event(ctx context.Context, e engine.Emit) (apitype.EngineEvent, error) {
	event := apitype.EngineEvent{Timestamp: int(t.now.Unix())}
	if e.Kind == engine.EmitDiagnostic {
		event.DiagnosticEvent = &apitype.DiagnosticEvent{
			URN: string(e.URN), Prefix: e.Severity + ": ", Message: e.Message + "\n", Color: "never", Severity: e.Severity,
		}
		return event, nil
	}
	meta, err := t.metadata(ctx, e)
	if err != nil {
		return event, err
	}
	switch e.Kind {
	case engine.EmitPre:
		event.ResourcePreEvent = &apitype.ResourcePreEvent{Metadata: meta, Planning: t.preview}
	case engine.EmitOutputs:
		event.ResOutputsEvent = &apitype.ResOutputsEvent{Metadata: meta, Planning: t.preview}
	case engine.EmitFailed:
		event.ResOpFailedEvent = &apitype.ResOpFailedEvent{Metadata: meta}
	default:
		return event, deployments.Errorf(deployments.CodeInternal, "an event of kind %q cannot be shown", e.Kind)
	}
	return event, nil
}

// logical are the steps that stand for what the program wants; the others only carry it out.
var logical = map[engine.StepKind]bool{
	engine.StepCreate: true, engine.StepUpdate: true, engine.StepDelete: true, engine.StepSame: true,
	engine.StepReplace: true, engine.StepRead: true, engine.StepReadReplacement: true, engine.StepReadDiscard: true,
	engine.StepImport: true, engine.StepRefresh: true,
}

func (t telling) metadata(ctx context.Context, e engine.Emit) (apitype.StepEventMetadata, error) {
	meta := apitype.StepEventMetadata{
		Op: apitype.OpType(e.Step), URN: string(e.URN), Type: string(e.Type), Logical: logical[e.Step],
	}
	var err error
	var old, now resource.PropertyMap
	if meta.Old, old, err = t.state(ctx, e.Old); err != nil {
		return meta, err
	}
	if meta.New, now, err = t.state(ctx, e.New); err != nil {
		return meta, err
	}
	for _, s := range []*engine.State{e.Old, e.New} {
		if s != nil && s.Provider != "" {
			meta.Provider = s.Provider
		}
	}
	if e.Diff == nil {
		return meta, nil
	}
	meta.Keys, meta.Diffs = e.Diff.ReplaceKeys, e.Diff.ChangedKeys
	if len(e.Diff.Detailed) == 0 {
		meta.DetailedDiff = detailed(old, now)
		return meta, nil
	}
	meta.DetailedDiff = map[string]apitype.PropertyDiff{}
	for _, d := range e.Diff.Detailed {
		meta.DetailedDiff[d.Path] = apitype.PropertyDiff{Kind: apitype.DiffKind(d.Kind), InputDiff: d.InputDiff}
	}
	return meta, nil
}

// detailed is the diff of a provider that names no properties, made from the inputs: from their true values, so that a secret that
// changes is among them. It is nil when they are equal, or on one side there are none.
func detailed(old, now resource.PropertyMap) map[string]apitype.PropertyDiff {
	if old == nil || now == nil {
		return nil
	}
	changes := old.Diff(now, resource.IsInternalPropertyKey)
	if changes == nil {
		return nil
	}
	found := plugin.NewDetailedDiffFromObjectDiff(changes, true)
	diff := make(map[string]apitype.PropertyDiff, len(found))
	for path, d := range found {
		diff[path] = apitype.PropertyDiff{Kind: apitype.DiffKind(d.Kind.String()), InputDiff: true}
	}
	return diff
}

// state shows a state, and gives its inputs as they are.
func (t telling) state(ctx context.Context, s *engine.State) (*apitype.StepEventStateMetadata, resource.PropertyMap, error) {
	if s == nil {
		return nil, nil, nil
	}
	var inputs resource.PropertyMap
	state := &apitype.StepEventStateMetadata{
		Type: string(s.Type), URN: string(s.URN), Custom: s.Custom, Delete: s.Delete, ID: s.ID, Parent: string(s.Parent),
		Protect: s.Protect, Taint: s.Taint, External: s.External, RetainOnDelete: s.RetainOnDelete,
		Provider: s.Provider, InitErrors: s.InitErrors,
	}
	for _, path := range s.HideDiff {
		if p, err := resource.ParsePropertyPath(path); err == nil {
			state.HideDiffs = append(state.HideDiffs, p)
		}
	}
	for _, bag := range []struct {
		from engine.Bag
		to   *map[string]any
	}{{s.Inputs, &state.Inputs}, {s.Outputs, &state.Outputs}} {
		values, err := t.values.Decode(ctx, bag.from)
		if err != nil {
			return nil, nil, err
		}
		if bag.to == &state.Inputs {
			inputs = values
		}
		*bag.to = shown(values)
	}
	return state, inputs, nil
}

// shown gives values as JSON for people: secrets blinded, assets by their hash, unknowns as their sentinel.
func shown(m resource.PropertyMap) map[string]any {
	object := make(map[string]any, len(m))
	for k, v := range m {
		object[string(k)] = shownValue(v)
	}
	return object
}

func shownValue(v resource.PropertyValue) any {
	switch x := v.V.(type) {
	case *resource.Secret:
		return blinded
	case resource.Output:
		return shownValue(plainValue(v))
	case resource.Computed:
		return unknownText
	case resource.PropertyMap:
		return shown(x)
	case []resource.PropertyValue:
		list := make([]any, len(x))
		for i, e := range x {
			list[i] = shownValue(e)
		}
		return list
	case *resource.Asset:
		return shownAsset(x)
	case *resource.Archive:
		return map[string]any{resource.SigKey: resource.ArchiveSig, "hash": x.Hash, "path": x.Path, "uri": x.URI}
	case resource.ResourceReference:
		return string(x.URN)
	}
	return v.V
}

func shownAsset(a *asset.Asset) any {
	return map[string]any{resource.SigKey: resource.AssetSig, "hash": a.Hash, "path": a.Path, "uri": a.URI}
}

// unknownText is how the field writes a value that is not known yet.
const unknownText = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
