package service

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

const (
	// noWorkerAfter is how long something may wait for a worker before that is reported; noAnswerAfter is the same for
	// a request that its caller does not repeat.
	noWorkerAfter, noAnswerAfter = 3 * time.Second, 15 * time.Second
	// waitCheckEvery is how often a watched update is checked for a missing worker before its log begins;
	// waitCheckEveryBegun after that.
	waitCheckEvery, waitCheckEveryBegun = 2 * time.Second, 3 * time.Second
)

// whileServed returns a context that ends when the workflow waits for a worker or Temporal does not answer, which it
// checks repeatedly; caused returns the reason.
func (s *Service) whileServed(
	ctx context.Context, workflow string, every time.Duration,
) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for sleep(ctx, every) {
			if err := panics.Do("looking whether "+workflow+" waits", func() error {
				return s.checkClaimed(ctx, workflow)
			}); err != nil {
				cancel(err)
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// caused returns the reason for which a context of whileServed ended, if that caused err.
func caused(ctx context.Context, err error) error {
	if why := (*deployments.Error)(nil); err != nil && errors.As(context.Cause(ctx), &why) {
		return why
	}
	return err
}

// Away reports which part of the service does not answer, if that is known, and remembers when: whoever finds it out
// for a caller asks here.
func (s *Service) Away() error {
	if s.Unavailable == nil {
		return nil
	}
	err := s.Unavailable()
	if err != nil {
		now := time.Now()
		s.away.Store(&now)
	}
	return err
}

// reportWaits tells the watchers of an update when it waits for a worker, a part of the service does not answer, or an
// activity fails and is retried; each reason once, until the update waits for nothing. It ends with ctx.
func (w *watcher) reportWaits(ctx context.Context) {
	told, away := map[string]bool{}, false
	for {
		every := waitCheckEvery
		if len(w.feed.current().marks) > 0 {
			every = waitCheckEveryBegun
		}
		if !sleep(ctx, every) {
			return
		}
		why := ""
		if err := w.Away(); err != nil {
			why, away = err.Error()+"; waiting…", true
		} else {
			if away {
				away = false
				w.feed.publish(serviceMessage(w.update, "The service is whole again; the update goes on."))
			}
			why = w.waitsFor(ctx)
		}
		switch reason := reasonOf(why); {
		case why == "":
			clear(told)
		case !told[reason]:
			told[reason] = true
			w.feed.publish(serviceMessage(w.update, why))
		}
	}
}

// anyPath matches paths in messages.
var anyPath = regexp.MustCompile(`(?:/[^\s:/"]+){2,}`)

// reasonOf is what tells reasons apart: each attempt may be about another temporary file.
func reasonOf(why string) string { return anyPath.ReplaceAllString(why, "/…") }

// waitsFor returns what the update waits for, if that is known.
func (w *watcher) waitsFor(ctx context.Context) string {
	if w.runUnattended.Load() {
		queue, err := w.Organizations.TaskQueue(ctx, w.update.Organization)
		if err != nil {
			return ""
		}
		return w.noWorker(ctx, queue).Error()
	}
	return w.updateWaitsFor(ctx, w.update)
}

// updateWaitsFor returns what the workflows of an update wait for, if that is known.
func (s *Service) updateWaitsFor(ctx context.Context, u deployments.UpdateName) string {
	begun, why := s.workflowWaitsFor(ctx, deployments.UpdateWorkflowID(u))
	switch {
	case why == "" && begun:
		_, why = s.workflowWaitsFor(ctx, deployments.RunWorkflowID(u))
	case why == "" && u.Number() > 0: // it waits in its stack's queue
		_, why = s.workflowWaitsFor(ctx, deployments.StackWorkflowID(u.StackName))
	}
	return why
}

// workflowWaitsFor returns what a workflow waits for, if that is known, and whether the workflow exists.
func (s *Service) workflowWaitsFor(ctx context.Context, workflow string) (found bool, why string) {
	d, err := s.execution(ctx, workflow)
	if err == nil && d == nil {
		return false, ""
	}
	if err == nil {
		err = s.unclaimed(ctx, workflow, d)
	}
	if deployments.CodeOf(err) == deployments.CodeNoWorker {
		return true, err.Error()
	}
	return true, s.failing(workflow, d)
}

// checkClaimed returns CodeNoWorker when no worker has taken the workflow's next task, or the claim of its update, for
// a while.
func (s *Service) checkClaimed(ctx context.Context, workflow string) error {
	d, err := s.execution(ctx, workflow)
	if err != nil || d == nil {
		return err
	}
	return s.unclaimed(ctx, workflow, d)
}

// execution describes a workflow; nil when there is none. A closed workflow waits for nothing.
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

// unclaimed returns CodeNoWorker when no worker has taken the next task of a described workflow, or the claim of its
// update, for a while.
func (s *Service) unclaimed(
	ctx context.Context, workflow string, d *workflowservice.DescribeWorkflowExecutionResponse,
) error {
	task := d.GetPendingWorkflowTask()
	if task.GetState() == enums.PENDING_WORKFLOW_TASK_STATE_SCHEDULED && longSince(task.GetScheduledTime()) {
		return s.noWorker(ctx, d.GetExecutionConfig().GetTaskQueue().GetName())
	}
	for _, a := range d.GetPendingActivities() {
		if deployments.PresentName(a.GetActivityType().GetName()) != deployments.ActivityClaimStack ||
			a.GetState() != enums.PENDING_ACTIVITY_STATE_SCHEDULED ||
			a.GetLastFailure() != nil || !longSince(a.GetScheduledTime()) {
			continue
		}
		u, err := deployments.UpdateOfWorkflow(workflow)
		if err != nil {
			return err
		}
		queue, err := s.Organizations.TaskQueue(ctx, u.Organization)
		if err != nil {
			return err
		}
		return s.noWorker(ctx, queue)
	}
	return nil
}

// failing returns why an activity of the workflow failed that is being retried, if there is one; steps are excluded,
// because their progress says that.
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

// longSince reports whether a wait that began at t is long enough to be reported.
func longSince(t *timestamppb.Timestamp) bool {
	return t != nil && time.Since(t.AsTime()) >= noWorkerAfter
}

const (
	// polledWithin is how long after its last poll a worker counts as one that is there: a poll takes a minute.
	polledWithin = 90 * time.Second
	// backAfter is how long after Temporal was away workers may take to poll again.
	backAfter = 30 * time.Second
	// describeTimeout is how long Temporal may take to say who polls.
	describeTimeout = 2 * time.Second
)

// attended reports whether a task queue may have workers: some have polled it lately, or it is not known who does,
// because Temporal does not say, or was away and has forgotten.
func (s *Service) attended(ctx context.Context, queue string) bool {
	if away := s.away.Load(); away != nil && time.Since(*away) < backAfter {
		return true
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), describeTimeout) // ctx may have ended with the wait
	defer cancel()
	described, err := s.temporal.DescribeTaskQueue(asking, queue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	return err != nil || slices.ContainsFunc(described.GetPollers(), func(p *taskqueuepb.PollerInfo) bool {
		return time.Since(p.GetLastAccessTime().AsTime()) < polledWithin
	})
}

// noWorker returns the error about a task queue of which no worker has taken something up for a while.
func (s *Service) noWorker(ctx context.Context, queue string) error {
	attended := s.attended(ctx, queue)
	if s.Unattended != nil {
		s.Unattended(attended)
	}
	if attended {
		return deployments.Errorf(deployments.CodeNoWorker, "Waiting for a worker: those of the task queue %s have not "+
			"taken this up yet. They are busy, or were lost a moment ago; it continues by itself.", queue)
	}
	organization, own := deployments.OrganizationOfTaskQueue(queue)
	if !own {
		return deployments.Errorf(deployments.CodeNoWorker, "Waiting for a worker: none of the task queue %s takes "+
			"this up. Start one with `deployctl worker`, "+
			"with the settings of the service; the update then continues.", queue)
	}
	return deployments.Errorf(deployments.CodeNoWorker, "Waiting for a worker of organization %s, which has workers "+
		"of its own: none takes this up. "+
		"Start one with `deployctl worker --organization %s`, with the settings of the service; the update "+
		"then continues.", organization, organization)
}

// sleep waits for d, and reports whether ctx did not end before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
