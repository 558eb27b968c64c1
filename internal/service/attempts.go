package service

import (
	"context"
	"errors"
	"fmt"

	failurepb "go.temporal.io/api/failure/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
)

// attempts adds what only Temporal knows about running steps: the attempt, its last error, and the next retry.
func (w *watcher) attempts(ctx context.Context, p *deployments.Progress) {
	for i := range p.Running {
		if !p.Running[i].Ahead {
			p.Running[i].Attempt = 1
		}
	}
	description, err := w.temporal.DescribeWorkflowExecution(ctx, deployments.RunWorkflowID(w.update), "")
	if err != nil {
		return
	}
	pending := map[string]*workflowpb.PendingActivityInfo{}
	for _, activity := range description.GetPendingActivities() {
		pending[activity.GetActivityId()] = activity
	}
	for i := range p.Running {
		step := &p.Running[i]
		for _, id := range activityIDs(*step) {
			if activity, found := pending[id]; found {
				w.attempt(step, activity)
			}
		}
	}
}

// activityIDs returns the activity ids of a step: of the step itself, and of its settling.
func activityIDs(step deployments.RunningStep) [2]string {
	return [2]string{fmt.Sprintf("%s-%d", step.Step, step.Op), fmt.Sprintf("settle-%d", step.Op)}
}

func (w *watcher) attempt(step *deployments.RunningStep, activity *workflowpb.PendingActivityInfo) {
	if step.Ahead {
		return // its attempt waits for a slot on the worker
	}
	step.Attempt = int(activity.GetAttempt())
	if due := activity.GetNextAttemptScheduleTime(); due != nil {
		step.NextRetry = due.AsTime()
	}
	step.LastError = w.sentence(deployments.RunWorkflowID(w.update), activity.GetLastFailure())
}

// sentence returns the message of a workflow's failure without the text that Temporal adds.
func (s *Service) sentence(workflow string, f *failurepb.Failure) string {
	if f == nil {
		return ""
	}
	err := s.readers.of(workflow).Failures.FailureToError(f)
	if app := (*temporal.ApplicationError)(nil); errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}
