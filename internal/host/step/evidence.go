package step

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/errorclass"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"go.temporal.io/sdk/activity"
	"google.golang.org/grpc/codes"
)

// longestThrottled and longestNotReady are how long a call that its provider rejects in words only is repeated, if the
// resource has no customTimeouts. A throttled one passes by itself; one that is not ready may never be.
const (
	longestThrottled = 20 * time.Minute
	longestNotReady  = 5 * time.Minute
)

// weigh turns an error that a provider has answered into the result of the step, or into an error of the activity if
// the call is to be repeated. A provider that knows of settle rules says by its type what an error means, and a plain
// one means that nothing happened.
func (at *attempt) weigh(
	ctx context.Context, p *pluginhost.Provider, code codes.Code, text string,
) (engine.StepFinished, error) {
	result := failed(text)
	if code == codes.OK || at.step.Preview {
		return result, nil
	}
	ctx = context.WithoutCancel(ctx) // the answer may be a late one
	if _, knows := at.session.rules.ByProvider(ctx, p, at.step.Type); knows {
		result.Evidence = &engine.Evidence{Class: engine.ErrorDefinite}
		return result, nil
	}
	// The verdict quotes the text.
	hide := at.session.redactor(ctx, failure.BagsOf(at.step.Provider, at.step.New, at.step.Old)...)
	call := CallOf(at.step.Kind)
	verdict, err := at.session.own.Errors.Classify(errorclass.Error{
		Type: string(at.step.Type), Step: call, Code: code, Text: hide(text),
	})
	if err != nil {
		return result, err
	}
	result.Evidence = &engine.Evidence{Class: verdict.Class, By: verdict.By}
	if verdict.Typed && verdict.Class != engine.ErrorAmbiguous || verdict.Class == engine.ErrorDefinite {
		if verdict.Class == engine.ErrorExists {
			result.Evidence.Looked = existed
		}
		return result, nil
	}
	repeats := at.rule != nil && at.rule.Harmless()
	// An error of a deletion that nobody knows is left to the next update, which deletes it again: not every provider can
	// tell what is gone from what it cannot read.
	result.Evidence.Look = call == "create" && at.rule != nil && !repeats ||
		call == "delete" && verdict.Class == engine.ErrorAmbiguous
	longest := longestThrottled
	switch {
	case verdict.Class == engine.ErrorThrottled:
		at.pause = at.limiter.Observe(at.session.request.Scheduled, true)
	case verdict.Class == engine.ErrorNotReady, call == "create" && repeats && verdict.Class == engine.ErrorAmbiguous:
		longest = longestNotReady
	case call == "create" && at.rule == nil:
		result.Evidence.Looked = at.notLooked(ctx)
		return result, nil
	default:
		return result, nil
	}
	if at.step.Timeout > 0 {
		longest = time.Duration(at.step.Timeout * float64(time.Second))
	}
	if since, _ := at.session.rejected.LoadOrStore(at.step.Op, time.Now()); time.Since(since.(time.Time)) >= longest {
		result.Error = fmt.Sprintf("%s; it was repeated for %s", text, longest)
		return result, nil
	}
	at.evidence = result.Evidence
	return engine.StepFinished{}, failure.NotDone(text+"; the error is "+result.Evidence.String(), 0)
}

// notLooked says why a create could not be looked for.
func (at *attempt) notLooked(ctx context.Context) string {
	inputs, err := at.session.values.Decode(ctx, at.step.New.Inputs)
	if err != nil {
		inputs = nil
	}
	return "it may have been created, and could not be looked for: " + lookup.NotRuled(at.step.Type, inputs, at.noRule)
}

// passes reports whether the error of a look may pass, so that it is worth to look again: for a while, since the error
// may mean something else.
func (at *attempt) passes(ctx context.Context, text string) bool {
	return activity.IsActivity(ctx) && time.Since(activity.GetInfo(ctx).ScheduledTime) <= settlePatience &&
		at.mayPass(text)
}

// MayPass is passes without a bound.
func (at *attempt) mayPass(text string) bool {
	v, err := at.session.own.Errors.Classify(errorclass.Error{
		Type: string(at.step.Type), Step: "read", Code: codes.Unknown,
		Text: text})
	return err == nil && slices.Contains([]engine.ErrorClass{engine.ErrorAmbiguous, engine.ErrorThrottled,
		engine.ErrorNotReady}, v.Class)
}

// existed is what a provider means that says by a code that something exists, not in words that another call inside
// its own may have led to.
const existed = "this create has not made it; take it over with `deployctl import`, or with --adopt if a settle rule " +
	"can find it, or give the resource another name"

const notLookedFor = "it could not be looked for: "

// unseen is the outcome of a create that could not be looked for. After an error that nobody knows, of a provider that
// could not look before the create either, it most likely did nothing.
func unseen(after *engine.Evidence, seen bool, why string) engine.StepFinished {
	if after != nil && after.Class != engine.ErrorAmbiguous && !seen {
		return engine.StepFinished{Outcome: engine.OutcomeAbsent, Error: notLookedFor + why}
	}
	if after != nil {
		why = notLookedFor + why
	}
	return engine.StepFinished{Outcome: engine.OutcomeUndecidable, Error: why}
}

// foreign is the outcome of a create after which something was found that may have been there before. If the error says
// just that, it stands.
func foreign(after *engine.Evidence) engine.StepFinished {
	const theirs = "what was found under its name may belong to another owner"
	switch {
	case after == nil:
		return undecidableForeign
	case after.Class == engine.ErrorExists:
		return engine.StepFinished{Outcome: engine.OutcomeAbsent, Error: theirs}
	}
	return engine.StepFinished{Outcome: engine.OutcomeUndecidable, Foreign: true,
		Error: "its create failed, and " + theirs}
}

// takeOver returns the result of a create that has made its resource in spite of its error. The create may have ended
// in the middle: if the provider finds a difference, the next update repairs it.
func (at *attempt) takeOver(
	ctx context.Context, p *pluginhost.Provider, found plugin.ReadResponse, reasons []string, inputs resource.PropertyMap,
) (engine.StepFinished, error) {
	if len(reasons) == 0 {
		old := inputs
		if found.Inputs != nil {
			old = found.Inputs
		}
		d, err := compare.Resource{
			URN: at.step.URN, ID: string(found.ID), OldInputs: old, OldOutputs: found.Outputs, NewInputs: inputs,
		}.Diff(ctx, p)
		if err == nil && d.Changes == plugin.DiffSome {
			reasons = []string{"it was created, and is not as declared"}
		}
	}
	return at.found(ctx, found, reasons, inputs)
}

// CallOf names the call of a step as error hooks are told it.
func CallOf(kind engine.StepKind) string {
	switch kind {
	case engine.StepUpdate:
		return "update"
	case engine.StepDelete, engine.StepDeleteReplaced:
		return "delete"
	default:
		return "create"
	}
}
