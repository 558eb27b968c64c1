package activities

import (
	"context"
	"errors"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Save makes deltas durable, and then events visible. Saving the same number twice writes the same objects.
func (a *Activities) Save(ctx context.Context, in deployments.SaveInput) error {
	return failure.UntilStored(a.save(ctx, in))
}

func (a *Activities) save(ctx context.Context, in deployments.SaveInput) error {
	if len(in.Deltas) > 0 {
		if err := a.Store.Updates.SaveDeltas(ctx, in.Update, in.Number, in.Deltas); err != nil {
			return err
		}
		return a.append(ctx, in.Update, in.Number, a.shown(ctx, in))
	}
	saved := make(chan error, 1)
	go func() { // each save of what has a state is there, so that one that was removed is missed
		saved <- panics.Do("saving that nothing has changed", func() error {
			if in.Update.Number() == 0 {
				return nil
			}
			return a.Store.Updates.SaveDeltas(ctx, in.Update, in.Number, nil)
		})
	}()
	err := a.append(ctx, in.Update, in.Number, a.shown(ctx, in))
	return errors.Join(err, <-saved)
}

// longestShowing bounds how long the next save waits until the values of one save's events are read.
const longestShowing = time.Minute

// shown returns the events of a save as people see them. It cannot fail, because no state may be lost for what people
// see: an event that cannot be shown becomes a diagnostic. While the store is down that is never written: the append
// fails, too, and the repeated save shows the event.
func (a *Activities) shown(ctx context.Context, in deployments.SaveInput) []deployments.WatchEvent {
	if len(in.Events) == 0 && in.Number != 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, longestShowing)
	defer cancel()
	encoder := eventEncoder{now: time.Now()}
	var first []deployments.WatchEvent
	if values, request, err := a.valuesOf(ctx, in.Update, in.Base); err != nil {
		encoder.values = unreadable{err}
	} else {
		encoder.values, encoder.preview = statestore.Knowing(values, in.Deltas), request.DryRun
		first = opening(in.Number, request.Config)
	}
	return append(first, encoder.events(ctx, in.Events)...)
}

// unreadable is the decoder of values that cannot be read.
type unreadable struct{ err error }

func (u unreadable) Decode(context.Context, engine.Bag) (resource.PropertyMap, error) {
	return nil, u.err
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
		data, err = eventlog.Encode(encodable(events))
	}
	if err != nil {
		return err
	}
	return a.Store.Updates.AppendEvents(ctx, updates.Part{Update: u, Stream: eventlog.RunStream, Number: n}, data)
}
