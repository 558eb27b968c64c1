package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/deployctl/deployctl/deployments"
)

// update is the first update of the stack.
func (s *stage) update() deployments.UpdateName {
	return deployments.UpdateName{
		StackName: deployments.StackName{Organization: "organization", Project: project, Stack: s.stack}, Version: "1",
	}
}

// saving tells whether a save is being attempted, the last one or another. While Temporal is away it is not.
func (s *stage) saving(ctx context.Context) bool {
	return s.pending(ctx, deployments.RunWorkflowID(s.update()), deployments.ActivitySave) ||
		s.pending(ctx, deployments.UpdateWorkflowID(s.update()), deployments.ActivityCommitUpdate)
}

// pending tells whether an activity of a workflow is being attempted.
func (s *stage) pending(ctx context.Context, workflow, activity string) bool {
	d, err := s.temporal.DescribeWorkflowExecution(ctx, workflow, "")
	if err != nil {
		return false
	}
	for _, a := range d.GetPendingActivities() {
		if a.GetActivityType().GetName() == activity && a.GetState() == enums.PENDING_ACTIVITY_STATE_STARTED {
			return true
		}
	}
	return false
}

// nextStep waits until a step has ended after a moment, and begun after another, or the Run has ended, and gives when
// that was. When nothing can end because the cloud holds all that has begun, it is served as well.
func (s *stage) nextStep(ctx context.Context, begun, after time.Time) (at time.Time, err error) {
	err = eventually(ctx, "a step ends", func() (bool, error) {
		steps, since := map[int64]bool{}, map[int64]time.Time{}
		events := s.temporal.GetWorkflowHistory(ctx, deployments.RunWorkflowID(s.update()), "", false,
			enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			var unavailable *serviceerror.Unavailable
			switch {
			case errors.As(err, &unavailable):
				return false, nil
			case err != nil:
				return false, ctx.Err()
			}
			at = e.GetEventTime().AsTime()
			switch e.GetEventType() {
			case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
				name := e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
				steps[e.GetEventId()] = name == deployments.ActivityStep || name == deployments.ActivitySettle
			case enums.EVENT_TYPE_ACTIVITY_TASK_STARTED:
				since[e.GetActivityTaskStartedEventAttributes().GetScheduledEventId()] = at
			case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
				id := e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()
				if steps[id] && at.After(after) && since[id].After(begun) {
					return true, nil
				}
			case enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
				enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
				return true, nil
			}
		}
		at = time.Now()
		return s.allHeld(ctx, begun)
	})
	return at, err
}

// allHeld tells whether all steps under way are held by the cloud, and have begun after a moment.
func (s *stage) allHeld(ctx context.Context, begun time.Time) (bool, error) {
	faults, err := s.cloud.Faults(ctx)
	if err != nil {
		return false, err
	}
	held := 0
	for _, f := range faults {
		held += f.Held
	}
	if held == 0 {
		return false, nil
	}
	d, err := s.temporal.DescribeWorkflowExecution(ctx, deployments.RunWorkflowID(s.update()), "")
	if err != nil {
		return false, ctx.Err() // Temporal is away
	}
	for _, a := range d.GetPendingActivities() {
		if name := a.GetActivityType().GetName(); name != deployments.ActivityStep &&
			name != deployments.ActivitySettle {
			continue
		}
		if !a.GetLastStartedTime().AsTime().After(begun) {
			return false, nil
		}
		held--
	}
	return held == 0, nil
}

// later does something after a while; settled waits for it.
func (s *stage) later(ctx context.Context, wait time.Duration, do func() error) {
	done := make(chan error, 1)
	s.pendings = append(s.pendings, done)
	go func() {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		done <- do()
	}()
}

// settled waits until what was to be done later is done.
func (s *stage) settled(ctx context.Context) error {
	var err error
	for _, done := range s.pendings {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-done:
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return fmt.Errorf("bring everything back: %w", err)
	}
	return nil
}
