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

// attempts adds what Temporal alone knows of running steps: which attempt it is, why the last one failed, and when the
// next one is due.
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

// activityIDs are the ids, as the workflows name them, of the activities that carry a step out: it is made, or what
// became of it is found out.
func activityIDs(step deployments.RunningStep) [2]string {
	return [2]string{fmt.Sprintf("%s-%d", step.Step, step.Op), fmt.Sprintf("settle-%d", step.Op)}
}

func (w *watcher) attempt(step *deployments.RunningStep, activity *workflowpb.PendingActivityInfo) {
	if step.Ahead {
		return // its attempt waits for a turn on the worker
	}
	step.Attempt = int(activity.GetAttempt())
	if due := activity.GetNextAttemptScheduleTime(); due != nil {
		step.NextRetry = due.AsTime()
	}
	step.LastError = w.sentence(deployments.RunWorkflowID(w.update), activity.GetLastFailure())
}

// sentence tells of a failure in a workflow without Temporal's own words around it.
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
