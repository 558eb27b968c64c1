package activities

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// decoder returns the values of bags.
type decoder interface {
	Decode(ctx context.Context, bag engine.Bag) (resource.PropertyMap, error)
}

// eventEncoder translates what the core emits into engine events, as Pulumi's displays read them.
type eventEncoder struct {
	values  decoder
	preview bool
	now     time.Time
}

// events returns an event for each emit: one that cannot be shown becomes a diagnostic.
func (t eventEncoder) events(ctx context.Context, emits []engine.Emit) []deployments.WatchEvent {
	var events []deployments.WatchEvent
	for _, e := range emits {
		var event apitype.EngineEvent
		if err := panics.Do("showing an event of "+string(e.URN), func() (err error) {
			event, err = t.event(ctx, e.Whole())
			return err
		}); err != nil {
			event = notShown(t.now, string(e.Kind), string(e.URN), err)
		}
		events = append(events, deployments.WatchEvent{Event: &event})
	}
	return events
}

// notShown returns the diagnostic that takes the place of an event.
func notShown(now time.Time, kind, urn string, err error) apitype.EngineEvent {
	return apitype.EngineEvent{Timestamp: int(now.Unix()), DiagnosticEvent: &apitype.DiagnosticEvent{
		URN: urn, Prefix: "warning: ", Color: "never", Severity: "warning",
		Message: "an event (" + kind + ") of this resource cannot be shown; the state has the resource: " +
			failure.Head(err.Error(), failure.MaxFailure) + "\n",
	}}
}

// encodable replaces the events that cannot be written as JSON. Most can, so they are not tried one by one before.
func encodable(events []deployments.WatchEvent) []deployments.WatchEvent {
	out := slices.Clone(events)
	for i, e := range out {
		if _, err := json.Marshal(e); err != nil {
			event := notShown(time.Now(), "not JSON", "", err)
			out[i] = deployments.WatchEvent{Event: &event}
		}
	}
	return out
}

func (t eventEncoder) event(ctx context.Context, e engine.Emit) (apitype.EngineEvent, error) {
	event := apitype.EngineEvent{Timestamp: int(t.now.Unix())}
	if e.Kind == engine.EmitDiagnostic {
		event.DiagnosticEvent = &apitype.DiagnosticEvent{
			URN: string(e.URN), Prefix: e.Severity + ": ", Message: e.Message + "\n", Color: "never",
			Severity: e.Severity,
		}
		return event, nil
	}
	if e.Kind == engine.EmitViolation && e.Violation != nil {
		event.PolicyEvent = policyEvent(e)
		return event, nil
	}
	if e.Kind == engine.EmitRemediation && e.Remediation != nil {
		var err error
		event.PolicyRemediationEvent, err = t.remediation(ctx, e)
		return event, err
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

func policyEvent(e engine.Emit) *apitype.PolicyEvent {
	v := e.Violation
	return &apitype.PolicyEvent{
		ResourceURN: string(e.URN), Message: v.Message + "\n", Color: "never", PolicyName: v.Policy,
		PolicyPackName: v.Pack.Name, PolicyPackVersion: v.Pack.Version, EnforcementLevel: string(v.Level),
		Severity: v.Severity,
	}
}

// remediation returns the event of a remediation, with redacted values.
func (t eventEncoder) remediation(ctx context.Context, e engine.Emit) (*apitype.PolicyRemediationEvent, error) {
	r := e.Remediation
	before, err := t.values.Decode(ctx, r.Before)
	if err != nil {
		return nil, err
	}
	after, err := t.values.Decode(ctx, r.After)
	return &apitype.PolicyRemediationEvent{
		ResourceURN: string(e.URN), Color: "never", PolicyName: r.Policy, PolicyPackName: r.Pack.Name,
		PolicyPackVersion: r.Pack.Version, Before: redaction.Values(before), After: redaction.ValuesAfter(before, after),
	}, err
}

// logicalSteps are the steps that show what the program wants; the others only carry it out.
var logicalSteps = map[engine.StepKind]bool{
	engine.StepCreate: true, engine.StepUpdate: true, engine.StepDelete: true, engine.StepSame: true,
	engine.StepReplace: true, engine.StepRead: true, engine.StepReadReplacement: true, engine.StepReadDiscard: true,
	engine.StepImport: true, engine.StepRefresh: true,
}

func (t eventEncoder) metadata(ctx context.Context, e engine.Emit) (apitype.StepEventMetadata, error) {
	meta := apitype.StepEventMetadata{
		Op: apitype.OpType(e.Step), URN: string(e.URN), Type: string(e.Type), Logical: logicalSteps[e.Step],
	}
	old, err := t.decode(ctx, e.Old)
	if err != nil {
		return meta, err
	}
	now := old
	if e.New != e.Old {
		if now, err = t.decode(ctx, e.New); err != nil {
			return meta, err
		}
	}
	meta.Old, meta.New = stateMetadata(e.Old), stateMetadata(e.New)
	showValues(&meta, e.Diff, old, now)
	for _, s := range []*engine.State{e.Old, e.New} {
		if s != nil && s.Provider != "" {
			meta.Provider = s.Provider
		}
	}
	if e.Diff == nil || e.Diff.Change == engine.ChangeNone {
		return meta, nil
	}
	meta.Keys, meta.Diffs = e.Diff.ReplaceKeys, e.Diff.ChangedKeys
	if len(e.Diff.Detailed) == 0 {
		meta.DetailedDiff = detailed(old.inputs, now.inputs)
		return meta, nil
	}
	meta.DetailedDiff = map[string]apitype.PropertyDiff{}
	for _, d := range e.Diff.Detailed {
		meta.DetailedDiff[d.Path] = apitype.PropertyDiff{Kind: apitype.DiffKind(d.Kind), InputDiff: d.InputDiff}
	}
	return meta, nil
}

// detailed computes a detailed diff from the inputs, for a provider that names no properties. It compares unredacted
// values, so that a changed secret is in the diff. It returns nil if the inputs are equal or one side has none.
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

// stateValues are the inputs and outputs of a state.
type stateValues struct{ inputs, outputs resource.PropertyMap }

func (t eventEncoder) decode(ctx context.Context, s *engine.State) (o stateValues, err error) {
	if s == nil {
		return o, nil
	}
	if o.inputs, err = t.values.Decode(ctx, s.Inputs); err != nil {
		return o, err
	}
	o.outputs, err = t.values.Decode(ctx, s.Outputs)
	return o, err
}

// stateMetadata returns a state without its values.
func stateMetadata(s *engine.State) *apitype.StepEventStateMetadata {
	if s == nil {
		return nil
	}
	state := &apitype.StepEventStateMetadata{
		Type: string(s.Type), URN: string(s.URN), Custom: s.Custom, Delete: s.Delete, ID: s.ID,
		Parent:  string(s.Parent),
		Protect: s.Protect, Taint: s.Taint, External: s.External, RetainOnDelete: s.RetainOnDelete,
		Provider: s.Provider, InitErrors: s.InitErrors,
	}
	for _, path := range s.HideDiff {
		if p, err := resource.ParsePropertyPath(path); err == nil {
			state.HideDiffs = append(state.HideDiffs, p)
		}
	}
	return state
}

// showValues puts redacted values into an event; redacted secrets that differ look different.
func showValues(meta *apitype.StepEventMetadata, diff *engine.Diff, old, now stateValues) {
	if meta.Old != nil {
		meta.Old.Inputs, meta.Old.Outputs = redaction.Values(old.inputs), redaction.Values(old.outputs)
	}
	if meta.New != nil {
		meta.New.Inputs, meta.New.Outputs = redaction.ValuesAfter(old.inputs, now.inputs),
			redaction.ValuesAfter(old.outputs, now.outputs)
	}
	if meta.Old == nil || meta.New == nil || diff == nil || diff.Change == engine.ChangeNone ||
		meta.Op == apitype.OpRefresh {
		return
	}
	for key, output := range old.outputs { // an output that was changed outside, and that the update remediates
		if input, ok := now.inputs[key]; ok && names(diff, string(key)) && input.DeepEquals(old.inputs[key]) {
			meta.Old.Outputs[string(key)] = redaction.ValuesAfter(
				resource.PropertyMap{key: input}, resource.PropertyMap{key: output})[string(key)]
		}
	}
}

// names reports whether a diff is about a property. A diff that names no property is about all of them.
func names(d *engine.Diff, key string) bool {
	return len(d.Detailed)+len(d.ChangedKeys) == 0 || slices.Contains(d.ChangedKeys, key) ||
		slices.ContainsFunc(d.Detailed, func(p engine.PropertyDiff) bool {
			path, err := resource.ParsePropertyPath(p.Path)
			return err == nil && len(path) > 0 && path[0] == key
		})
}
