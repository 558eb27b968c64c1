package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

// ends are the activities after which an update's log has its end.
var ends = map[string]bool{deployments.ActivityCommitUpdate: true, deployments.ActivityEndLease: true,
	deployments.ActivityAddToHistory: true}

// stages tells when an update has begun, as soon as it has, and when its workflow has ended the log, or is closed
// without that (false). The history of the workflow says both as it happens, however large the update is: its steps are
// in another one.
func (w *watcher) stages(ctx context.Context) (begun <-chan time.Time, ended <-chan bool) {
	begins, end := make(chan time.Time, 1), make(chan bool, 1)
	var once sync.Once
	begin := func(at time.Time) { once.Do(func() { begins <- at }) }
	go func() {
		for pause := brisk; ; pause = min(pause*3/2, endingEvery) {
			var written bool
			err := panics.Do("reading the history of an update", func() (err error) {
				written, err = w.readStages(ctx, begin)
				return err
			})
			if err == nil {
				begin(time.Time{})
				end <- written
				return
			}
			if unknown := (*serviceerror.NotFound)(nil); !errors.As(err, &unknown) {
				begin(time.Time{}) // Temporal is unreachable, and the log may go on
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause): // it has not begun, or Temporal is unreachable
			}
		}
	}()
	return begins, end
}

// readStages reads the history of the update's workflow as it grows, calls begin with the time at which an activity has
// ended, the first of which is the claim, and returns true when the log has its end, or false when the workflow is
// closed.
func (w *watcher) readStages(ctx context.Context, begin func(at time.Time)) (written bool, err error) {
	scheduled := map[int64]string{}
	events := w.temporal.GetWorkflowHistory(ctx, deployments.UpdateWorkflowID(w.update), "", true,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return false, err
		}
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			scheduled[e.GetEventId()] = deployments.PresentName(a.GetActivityType().GetName())
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
			if begin(e.GetEventTime().AsTime()); ends[scheduled[a.GetScheduledEventId()]] {
				return true, nil
			}
		}
	}
	return false, ctx.Err()
}
