package step

import (
	"context"
	"errors"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"go.temporal.io/sdk/temporal"
)

// guarded carries out the step. A panic ends it: before the call as failed, after it as undecidable. It is not
// repeated, because a repeated attempt would panic again.
func (at *attempt) guarded(ctx context.Context) (result engine.StepFinished, err error) {
	err = panics.Do("carrying out "+string(at.step.Kind)+" "+string(at.step.URN), func() (err error) {
		result, err = at.run(ctx)
		return err
	})
	var defect *panics.PanicError
	switch {
	case !errors.As(err, &defect):
		return result, err
	case at.sent:
		return engine.StepFinished{Outcome: engine.OutcomeUndecidable, Error: defect.Error()}, nil
	}
	return failed(defect.Error()), nil
}

// unsuccessful returns an error for a failed, partial or undecidable step, with the output as its detail, so that
// Temporal counts the activity as failed, too. It returns nil for other outcomes.
func unsuccessful(ctx context.Context, out deployments.StepOutput) error {
	switch out.Outcome {
	case engine.OutcomeFailed, engine.OutcomePartial, engine.OutcomeUndecidable:
	default:
		return nil
	}
	text := out.Error
	if text == "" && len(out.Failures) > 0 {
		text = out.Failures[0].Reason
	}
	if e := out.Evidence; e != nil && e.Class != engine.ErrorDefinite {
		text += "; the error is " + e.String()
		if e.Look {
			text += ": it is looked for"
		} else if e.Looked != "" {
			text += ": " + e.Looked
		}
	}
	return temporal.NewApplicationErrorWithOptions(failure.Cut(ctx, text, failure.MaxFailure), deployments.ErrorStepFailed,
		temporal.ApplicationErrorOptions{
			NonRetryable: true, Details: []any{out},
		})
}

// unsent ends an attempt that made no call because of an error of the service itself: a transient error is retried, any
// other fails the step, which had no effect.
func unsent(result engine.StepFinished, err error) (engine.StepFinished, error) {
	if failure.IsApplication(err) || failure.Interrupted(err) || errors.Is(err, context.DeadlineExceeded) {
		return result, err
	}
	if failure.Retryable(err) {
		return result, failure.Postponed(err.Error(), 0)
	}
	return failed(err.Error()), nil
}

// judge turns the answer of a changing call into the result of the step, or into an error of the activity. Reasons are
// those of a failed initialisation.
func (at *attempt) judge(
	ctx context.Context, p *pluginhost.Provider, err error,
) (result engine.StepFinished, reasons []string, end error) {
	if temporal.IsCanceledError(err) || failure.IsApplication(err) {
		return engine.StepFinished{}, nil, err
	}
	v := p.Classify(err)
	switch v.Outcome {
	case pluginhost.Answered:
		return engine.StepFinished{Outcome: engine.OutcomeDone}, nil, nil
	case pluginhost.Exists:
		var init *plugin.InitError
		if errors.As(err, &init) {
			reasons = init.Reasons
		}
		if notReady := (*pluginhost.NotReady)(nil); errors.As(err, &notReady) && at.step.Await {
			why := strings.TrimPrefix(strings.Join(reasons, "; "), "it waits for ")
			return engine.StepFinished{Outcome: engine.OutcomeDone,
				Awaited: &engine.Awaited{For: why, After: notReady.After.Seconds()}}, reasons, nil
		}
		return engine.StepFinished{Outcome: engine.OutcomePartial, Error: pluginhost.ErrorText(err)}, reasons, nil
	case pluginhost.NotDone:
		return engine.StepFinished{}, nil, failure.NotDone(pluginhost.ErrorText(err), v.RetryAfter)
	case pluginhost.Unknown:
		if !v.Died {
			v.Reason = pluginhost.ErrorText(err)
		}
		return engine.StepFinished{}, nil, failure.UnknownOutcome(failure.Head(v.Reason, failure.MaxFailure))
	case pluginhost.Unreadable: // a repeated call would have the same answer, and possibly a second effect
		return engine.StepFinished{Outcome: engine.OutcomeUndecidable,
			Error: "the call was made, and its answer cannot be read: " + v.Reason}, nil, nil
	default:
		result, end = at.weigh(ctx, p, v.Code, pluginhost.ErrorText(err))
		return result, nil, end
	}
}

// hadEffect reports whether a call is known to have had its effect.
func hadEffect(result engine.StepFinished) bool {
	return result.Outcome == engine.OutcomeDone || result.Outcome == engine.OutcomePartial
}
