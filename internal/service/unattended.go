package service

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/panics"
)

const (
	// unattended is how long something may wait for a worker until that is told; unanswered is how long a request does
	// that is not made again by who waits for its answer.
	unattended, unanswered = 3 * time.Second, 15 * time.Second
	// attendEvery is how often it is looked whether an update waits for a worker, until its log begins; then
	// attendBegun is.
	attendEvery, attendBegun = 2 * time.Second, 3 * time.Second
)

// whileAttended returns a context that ends when the workflow waits for a worker, or Temporal does not answer, which is
// looked at again and again; caused gives that error.
func (s *Service) whileAttended(
	ctx context.Context, workflow string, every time.Duration,
) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for sleep(ctx, every) {
			if err := panics.Do("looking whether "+workflow+" waits", func() error {
				return s.waits(ctx, workflow)
			}); err != nil {
				cancel(err)
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// caused is why a context of whileAttended ended, if that made the error.
func caused(ctx context.Context, err error) error {
	if why := (*deployments.Error)(nil); err != nil && errors.As(context.Cause(ctx), &why) {
		return why
	}
	return err
}

// away says which part of the service does not answer, if that is known.
func (s *Service) away() error {
	if s.Away == nil {
		return nil
	}
	return s.Away()
}

// attend tells, while an update is watched, when it waits for a worker, a part of the service does not answer, or an
// activity fails and is tried again; each reason once, until it waits for nothing. It ends with ctx.
func (w *watcher) attend(ctx context.Context) {
	told := map[string]bool{}
	for {
		every := attendEvery
		if len(w.feed.look().marks) > 0 {
			every = attendBegun
		}
		if !sleep(ctx, every) {
			return
		}
		why := ""
		if err := w.away(); err != nil {
			why = err.Error() + "; waiting…"
		} else {
			why = w.standstill(ctx)
		}
		switch {
		case why == "":
			clear(told)
		case !told[why]:
			told[why] = true
			w.feed.tell(said(w.update, why))
		}
	}
}

// standstill says for what the update waits, if that is known.
func (w *watcher) standstill(ctx context.Context) string {
	if w.lonely.Load() {
		queue, err := w.TaskQueue(ctx, w.update.Organization)
		if err != nil {
			return ""
		}
		return w.noWorker(queue).Error()
	}
	begun, why := w.standstillOf(ctx, deployments.UpdateWorkflowID(w.update))
	switch {
	case why == "" && begun:
		_, why = w.standstillOf(ctx, deployments.RunWorkflowID(w.update))
	case why == "" && w.update.Number() > 0: // it waits in its stack's queue
		_, why = w.standstillOf(ctx, deployments.StackWorkflowID(w.update.StackName))
	}
	return why
}

// standstillOf says for what a workflow waits, if that is known; found tells whether there is such a workflow, as far
// as is known.
func (w *watcher) standstillOf(ctx context.Context, workflow string) (found bool, why string) {
	d, err := w.execution(ctx, workflow)
	if err == nil && d == nil {
		return false, ""
	}
	if err == nil {
		err = w.unclaimed(ctx, workflow, d)
	}
	if deployments.CodeOf(err) == deployments.CodeNoWorker {
		return true, err.Error()
	}
	return true, w.failing(workflow, d)
}

// waits is CodeNoWorker when no worker has taken up the workflow's next task, or the claim of its update, for a while.
func (s *Service) waits(ctx context.Context, workflow string) error {
	d, err := s.execution(ctx, workflow)
	if err != nil || d == nil {
		return err
	}
	return s.unclaimed(ctx, workflow, d)
}

// execution tells of a workflow; nil when there is none. What has ended waits for nothing.
func (s *Service) execution(
	ctx context.Context, workflow string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d, err := s.temporal.DescribeWorkflowExecution(ctx, workflow, "")
	if missing := (*serviceerror.NotFound)(nil); errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, failure("look whether a worker has it", err)
	}
	if d.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return &workflowservice.DescribeWorkflowExecutionResponse{}, nil
	}
	return d, nil
}

// unclaimed is CodeNoWorker when no worker has taken up a workflow's next task, or the claim of its update, for a
// while.
func (s *Service) unclaimed(
	ctx context.Context, workflow string, d *workflowservice.DescribeWorkflowExecutionResponse,
) error {
	task := d.GetPendingWorkflowTask()
	if task.GetState() == enums.PENDING_WORKFLOW_TASK_STATE_SCHEDULED && longSince(task.GetScheduledTime()) {
		return s.noWorker(d.GetExecutionConfig().GetTaskQueue().GetName())
	}
	for _, a := range d.GetPendingActivities() {
		if a.GetActivityType().GetName() != deployments.ActivityClaim ||
			a.GetState() != enums.PENDING_ACTIVITY_STATE_SCHEDULED ||
			a.GetLastFailure() != nil || !longSince(a.GetScheduledTime()) {
			continue
		}
		u, err := deployments.UpdateOfWorkflow(workflow)
		if err != nil {
			return err
		}
		queue, err := s.TaskQueue(ctx, u.Organization)
		if err != nil {
			return err
		}
		return s.noWorker(queue)
	}
	return nil
}

// failing says why an activity of the workflow failed that is tried again, if there is one; of steps, their progress
// says that.
func (s *Service) failing(workflow string, d *workflowservice.DescribeWorkflowExecutionResponse) string {
	for _, a := range d.GetPendingActivities() {
		kind := a.GetActivityType().GetName()
		if a.GetAttempt() > 1 && a.GetLastFailure() != nil && kind != deployments.ActivityStep &&
			kind != deployments.ActivitySettle {
			return "Waiting: " + s.sentence(workflow, a.GetLastFailure()) + "; it is tried again by itself"
		}
	}
	return ""
}

// longSince tells whether a time is longer ago than something may wait without a word.
func longSince(t *timestamppb.Timestamp) bool {
	return t != nil && time.Since(t.AsTime()) >= unattended
}

// noWorker says for what worker something waits that is in a task queue.
func (s *Service) noWorker(queue string) error {
	if s.Unattended != nil {
		s.Unattended()
	}
	organization, own := deployments.OrganizationOfTaskQueue(queue)
	if !own {
		return deployments.Errorf(deployments.CodeNoWorker, "Waiting for a worker: none of the task queue %s takes "+
			"this up. Start one with `deployctl worker`, "+
			"with the settings of the service; it goes on by itself then.", queue)
	}
	return deployments.Errorf(deployments.CodeNoWorker, "Waiting for a worker of organization %s, which has workers "+
		"of its own: none takes this up. "+
		"Start one with `deployctl worker --organization %s`, with the settings of the service; it goes on by itself "+
		"then.", organization, organization)
}

// sleep waits, and reports whether it did before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
