package step

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// trySettle says how a lost create of a resource that exists would be settled: whether the rule of its type finds it,
// and what would show that it is ours. It changes nothing.
func (at *attempt) trySettle(ctx context.Context, p *pluginhost.Provider, inputs resource.PropertyMap) error {
	old := at.step.Old
	tried := &attempt{session: at.session, heartbeat: at.heartbeat, limiter: at.limiter, step: engine.Step{
		Op: at.step.Op, Kind: engine.StepCreate, URN: at.step.URN, Type: at.step.Type, Provider: at.step.Provider,
		Timeout: at.step.Timeout, New: old,
	}}
	text, err := tried.tryRule(ctx, p, old.ID, inputs)
	if err != nil {
		return err
	}
	hide := at.session.redactor(ctx, failure.BagsOf(at.step.Provider, old)...)
	at.session.tell(diag.Info, at.step.URN, "a lost create "+hide(text))
	return nil
}

// tryRule completes the sentence of trySettle for the resource with an id.
func (at *attempt) tryRule(
	ctx context.Context, p *pluginhost.Provider, id string, inputs resource.PropertyMap,
) (string, error) {
	switch by := at.session.rules.Declared(ctx, p, at.step.Type); by {
	case provider.SettleByReconcile:
		return "would be made again: its provider is convergent", nil
	case provider.SettleByRead:
		return "would be looked for by its provider", nil
	}
	// Its create is not known any more, and its mark is.
	at.noted.Text = lookup.PlaceIn(at.session.rules.OfMarks(ctx, p, at.step.Provider, at.step.Type), inputs).Get(inputs)
	f, why, err := at.finder(ctx, p, inputs, lookup.AnyRule)
	switch {
	case err != nil:
		return "", err
	case f == nil:
		return "could not be looked for: " + lookup.NotRuled(at.step.Type, inputs, why), nil
	case f.Harmless():
		return fmt.Sprintf("would be made again: %s (%s)", f.Kind(), f.From), nil
	}
	found, _, ended, err := at.look(ctx, p, f, inputs)
	if err != nil {
		return "", err
	}
	text := "would be looked for " + f.String()
	switch {
	case ended != nil:
		return text + ", which fails: " + ended.Error, nil
	case found.ID == "" || found.Outputs == nil:
		return text + ", and would not be found although it exists: the rule is wrong, or it was changed since", nil
	case string(found.ID) != id:
		return fmt.Sprintf("%s, and another resource would be found: %s, not %s", text, found.ID, id), nil
	}
	return text + ", and would be found; that it is ours is shown by " + at.proofs(f, inputs), nil
}

// proofs names what can show that what a rule finds is ours.
func (at *attempt) proofs(f *lookup.Finder, inputs resource.PropertyMap) string {
	switch {
	case lookup.IsMark(f.Place.Get(inputs)) && f.Accepts(settlerule.ByMark):
		return "its mark"
	case f.Accepts(settlerule.Seed) && f.Accepts(settlerule.Absence):
		return "a name that was generated for it, or else a look before its create"
	case f.Accepts(settlerule.Absence):
		return "a look before its create"
	case f.Accepts(settlerule.Seed):
		return "a name that was generated for it"
	}
	return "nothing: a person decides"
}
