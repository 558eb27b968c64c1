package activities

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"go.temporal.io/sdk/temporal"
)

// Save makes deltas durable and events visible. Saving the same number twice writes the same objects. Whatever the store answers
// may pass, such as credentials that have expired, and what steps have done must not be forgotten: it is saved again.
func (a *Activities) Save(ctx context.Context, in deployments.SaveInput) error {
	err := a.save(ctx, in)
	if err == nil {
		return nil
	}
	switch code := deployments.CodeOf(err); code {
	case deployments.CodeUnauthorized, deployments.CodeForbidden, deployments.CodeInternal, deployments.CodeInvalid:
		return temporal.NewApplicationErrorWithOptions(err.Error(), string(code), temporal.ApplicationErrorOptions{Cause: err})
	}
	return failure(err)
}

func (a *Activities) save(ctx context.Context, in deployments.SaveInput) error {
	if len(in.Deltas) > 0 {
		if err := a.Store.SaveDeltas(ctx, in.Update, in.Number, in.Deltas); err != nil {
			return err
		}
	}
	values, request, err := a.valuesOf(ctx, in.Update, in.Base)
	if err != nil {
		return err
	}
	events, err := telling{values: values, preview: request.DryRun, now: time.Now()}.events(ctx, in.Events)
	if err != nil {
		return err
	}
	return a.append(ctx, in.Update, in.Number, events)
}

// append writes a part of the Run's stream, an empty one, too: readers stop at the first part that is missing.
func (a *Activities) append(ctx context.Context, u deployments.UpdateName, n int, events []deployments.WatchEvent) error {
	if events == nil {
		events = []deployments.WatchEvent{}
	}
	data, err := EncodeEvents(events)
	if err != nil {
		return err
	}
	return a.Store.AppendEvents(ctx, statestore.Part{Update: u, Stream: RunStream, Number: n}, data)
}
