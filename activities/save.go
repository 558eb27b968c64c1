package activities

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/statestore"
)

// Save makes deltas durable and events visible. Saving the same number twice writes the same objects.
func (a *Activities) Save(ctx context.Context, in deployments.SaveInput) error {
	return failureUntilStored(a.save(ctx, in))
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
	events, err := eventEncoder{values: values, preview: request.DryRun, now: time.Now()}.events(ctx, in.Events)
	if err != nil {
		return err
	}
	return a.append(ctx, in.Update, in.Number, events)
}

// append writes a part of the Run's stream, even if it is empty: readers stop at the first missing part.
func (a *Activities) append(
	ctx context.Context, u deployments.UpdateName, n int, events []deployments.WatchEvent,
) error {
	if events == nil {
		events = []deployments.WatchEvent{}
	}
	data, err := eventlog.Encode(events)
	if err != nil {
		return err
	}
	return a.Store.AppendEvents(ctx, statestore.Part{Update: u, Stream: eventlog.RunStream, Number: n}, data)
}
