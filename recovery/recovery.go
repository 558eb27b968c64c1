// Package recovery ends updates whose workflows cannot end them: those whose workflow was closed from outside, those
// whose worker is known to be gone, and those whose build no worker has any more. It reads what they did from their
// histories in Temporal and from the store.
//
// Every exported method of Activities translates its error once.
package recovery

import (
	"context"
	"errors"
	"log/slog"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc/codes"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/workflows"
)

// Recovery reads and ends the workflows of one store's updates. All fields are set.
type Recovery struct {
	Client    client.Client
	Namespace string
	Store     *statestore.Store
	Log       *slog.Logger
	// Data and Failures open the payloads of any workflow of the namespace, also those that earlier builds sealed.
	Data     converter.DataConverter
	Failures converter.FailureConverter
	// Unbound reports whether an earlier build sealed a payload, without saying all that it is of.
	Unbound func(*commonpb.Payload) bool
}

// notFound reports whether an error says that a workflow does not exist or is not running.
func notFound(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}

// translate makes an error of recovery one for Temporal: errors that may pass are retried, all others end the activity,
// and the Stack reports them.
func translate(err error) error {
	answer := serviceerror.ServiceError(nil)
	if errors.As(err, &answer) {
		code := deployments.CodeInternal
		if transient[answer.Status().Code()] {
			code = deployments.CodeUnavailable
		}
		err = deployments.Errorf(code, "Temporal answers: %s", answer.Status().Message())
	}
	return failure.Of(err)
}

// transient are the codes of Temporal's answers after which a retry may succeed.
var transient = map[codes.Code]bool{
	codes.Unavailable: true, codes.ResourceExhausted: true, codes.DeadlineExceeded: true, codes.Aborted: true,
	codes.Canceled: true, codes.Unknown: true, codes.Internal: true,
}

// salvage is what recovery writes for an update.
type salvage struct {
	workflows.Salvage
	// result is the result of the Run, if the Run had ended when its update was closed; else nil.
	result *engine.Result
}

// salvageOf reads from the history of an update's Run what is still to be written. It replays the Run; if this build
// cannot, it takes what the history itself records (see docs/adr/0032).
//
// update is the workflow run that has claimed the stack for the update; "" if that is not known any more.
func (r *Recovery) salvageOf(ctx context.Context, u deployments.UpdateName, update string) (salvage, error) {
	var h *history
	run, err := "", error(nil)
	if update != "" {
		run, err = r.firstRun(ctx, u, update)
	}
	if err == nil {
		h, err = r.readHistory(ctx, deployments.RunWorkflowID(u), run)
	}
	switch {
	case notFound(err), errors.Is(err, errNotStarted): // or its retention has ended: only the saves are left
		last, err := r.Store.Updates.LastSave(ctx, u)
		return salvage{Salvage: workflows.Salvage{Last: last}}, err
	case err != nil:
		return salvage{}, err
	}
	var outcome error // of reading outcomes from the store
	outcomeOf := func(op, round int) (engine.StepFinished, bool) {
		if recorded, ok := h.outcomeOf(op); ok {
			return recorded, true
		}
		found, err := r.Store.Updates.Outcome(ctx, u, op, round)
		if outcome = errors.Join(outcome, err); found == nil || err != nil || doubted(*found) {
			return engine.StepFinished{}, false
		}
		return *found, true
	}
	out, err := h.result()
	if out != nil || err != nil {
		end := salvage{Salvage: workflows.Salvage{Last: out.Saves}, result: &out.Result}
		if out.LastSave != nil {
			end.Saves = []deployments.SaveInput{*out.LastSave}
		}
		return end, err
	}
	replayed, err := h.replay()
	if err != nil {
		r.Log.Warn("The Run of an update cannot be replayed; the next update settles what its history does not say.",
			"update", u.String(), "error", err)
		end, err := h.salvage(outcomeOf)
		return salvage{Salvage: end}, errors.Join(err, outcome)
	}
	end := replayed.Finish(outcomeOf)
	return salvage{Salvage: end}, outcome
}
