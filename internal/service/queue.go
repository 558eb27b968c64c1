package service

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/workflows"
)

// Stack describes a stack, with what runs and waits.
func (s *Service) Stack(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	info, err := s.store.Stack(ctx, name)
	if err != nil {
		return info, err
	}
	queue, err := s.queuedSoon(ctx, name)
	if err != nil {
		return info, err
	}
	info.Active, info.Queued = queue.Active, queue.Queued
	if info.Active != nil {
		info.Active.Waiting = s.waiting(ctx, info.Active.Update)
	}
	return info, nil
}

// waiting returns the URNs of creates of an update that wait for an answer; none where its Run does not say so soon.
func (s *Service) waiting(ctx context.Context, u deployments.UpdateName) []string {
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var p deployments.Progress
	if err := s.ask(soon, deployments.RunWorkflowID(u), deployments.QueryProgress, &p); err != nil {
		return nil
	}
	return p.Waiting
}

// soonEnough is how long a stack's workflow is waited for where its head will do: until it is known whether Temporal
// answers.
const soonEnough = 4 * time.Second

// queuedSoon is queued, but of a workflow that does not answer soon, because no worker has it, it tells what the head
// says.
func (s *Service) queuedSoon(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	soon, cancel := context.WithTimeout(ctx, soonEnough)
	defer cancel()
	info, err := s.queued(soon, name)
	if err == nil || ctx.Err() != nil || soon.Err() == nil && deployments.CodeOf(err) != deployments.CodeNoWorker {
		return info, err
	}
	if away := s.away(); away != nil {
		return info, away
	}
	return s.unlocked(ctx, name)
}

// queued asks a stack's workflow. Where that does not run, nobody waits, and what runs is what the head says.
func (s *Service) queued(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	var info deployments.StackInfo
	err := s.ask(ctx, deployments.StackWorkflowID(name), deployments.QueryQueue, &info)
	if errors.Is(err, errClosed) {
		return s.unlocked(ctx, name)
	}
	if errors.Is(err, errNobody) {
		queue, failed := s.TaskQueue(ctx, name.Organization)
		if failed != nil {
			return info, failed
		}
		return info, s.noWorker(queue)
	}
	return info, failure("ask for the stack's queue", err)
}

// errClosed says that a workflow does not run, errNobody that Temporal answers, but no worker does.
var errClosed, errNobody = errors.New("the workflow is closed, or not known"), errors.New("no worker answers")

// asked is how long a worker may take to answer: more than the five seconds for which Temporal asks the one that had
// the workflow last.
const asked = 8 * time.Second

// ask asks a workflow that runs: what it was when it was ended tells nothing.
func (s *Service) ask(ctx context.Context, id, query string, answer any) error {
	soon, cancel := context.WithTimeout(ctx, asked)
	defer cancel()
	got, err := s.temporal.QueryWorkflowWithOptions(soon, &client.QueryWorkflowWithOptionsRequest{
		WorkflowID: id, QueryType: query, QueryRejectCondition: enums.QUERY_REJECT_CONDITION_NOT_OPEN,
	})
	var unknown *serviceerror.NotFound
	var nobody *serviceerror.FailedPrecondition // none has been seen
	switch {
	case errors.As(err, &unknown) || err == nil && got.QueryRejected != nil:
		return errClosed
	case errors.As(err, &nobody) || late(err) && s.away() == nil:
		return errNobody
	case err != nil:
		return err
	}
	return got.QueryResult.Get(answer)
}

// late says that Temporal, or nobody, answered in time.
func late(err error) bool {
	var timeout *serviceerror.DeadlineExceeded
	return errors.As(err, &timeout) || errors.Is(err, context.DeadlineExceeded)
}

// unlocked tells of a stack whose workflow does not run.
func (s *Service) unlocked(ctx context.Context, name deployments.StackName) (info deployments.StackInfo, err error) {
	head, err := s.Head(ctx, name)
	if err != nil || head.Active == nil {
		return info, err
	}
	active, err := s.Info(ctx, *head.Contract(name).Active)
	if err == nil && active.Ended.IsZero() {
		info.Active = &active
	}
	return info, nil //nolint:nilerr // it has not begun
}

// known reports that an update without a log yet is running, or waits in its stack's queue, or has just left that.
func (s *Service) known(ctx context.Context, u deployments.UpdateName) error {
	_, missing := s.temporal.DescribeWorkflowExecution(ctx, deployments.UpdateWorkflowID(u), "")
	if missing == nil {
		return nil
	}
	queue, err := s.queued(ctx, u.StackName)
	if deployments.CodeOf(err) == deployments.CodeNoWorker && u.Number() > 0 {
		return nil // who watches is told
	}
	if err != nil {
		return err
	}
	if queue.Active != nil && queue.Active.Update == u || u.Number() > 0 && u.Number() <= queue.Version {
		return nil
	}
	if unknown := (*serviceerror.NotFound)(nil); errors.As(missing, &unknown) {
		return deployments.Errorf(deployments.CodeNotFound, "there is no update %s; `deployctl stack history` lists "+
			"those there are", u)
	}
	return failure("find the update", missing)
}

// position is the place of an update that waits in a queue; nil when it does not.
func (w *watcher) position(info deployments.StackInfo) *deployments.Progress {
	for i, waiting := range info.Queued {
		if waiting.Update == w.update {
			return &deployments.Progress{Position: i + 1, Behind: info.Active}
		}
	}
	return nil
}

// unbegun sends the end of an update that ended without having begun: one that left its queue, which has a result and
// never a log, or a preview that no worker took, which nobody recovers. One that nothing is known of any more is given
// up. The log is read after the result is there, because whatever has a log closes it first.
func (w *watcher) unbegun(ctx context.Context, queue deployments.StackInfo) (bool, error) {
	id := deployments.UpdateWorkflowID(w.update)
	described, err := w.temporal.DescribeWorkflowExecution(ctx, id, "")
	if unknown := (*serviceerror.NotFound)(nil); errors.As(err, &unknown) &&
		(queue.Active == nil || queue.Active.Update != w.update) {
		if w.missed++; w.missed < patience {
			return false, nil
		}
		return false, deployments.Errorf(deployments.CodeNotFound,
			"%s is not waiting any more, and never began: its stack's workflow was ended from outside; ask for it "+
				"again", w.update)
	}
	w.missed = 0
	closed := described.GetWorkflowExecutionInfo()
	if err != nil || closed.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return false, nil //nolint:nilerr // the next look may tell
	}
	info := deployments.UpdateInfo{
		Update: w.update, DryRun: true, Status: string(engine.StatusFailed),
		Started: closed.GetStartTime().AsTime(), Ended: closed.GetCloseTime().AsTime(),
	}
	why := w.temporal.GetWorkflow(ctx, id, "").Get(ctx, &info)
	if settled, ok := workflows.InfoOf(why); ok {
		info, why = settled, nil
	}
	if why != nil {
		var failed *temporal.WorkflowExecutionError
		if !errors.As(why, &failed) || w.update.Number() > 0 {
			return false, nil // its stack recovers it, or the next look tells
		}
		info.Error = reason(why)
		return true, w.send(deployments.WatchEvent{End: &info})
	}
	log, err := w.ReadEvents(ctx, statestore.Part{Update: w.update, Stream: eventlog.RunStream, Number: 1}, 1)
	if err != nil || len(log) > 0 {
		return false, err
	}
	return true, w.send(deployments.WatchEvent{End: &info})
}

// reason tells why a workflow failed, without Temporal's own words around it.
func reason(err error) string {
	if app := (*temporal.ApplicationError)(nil); errors.As(err, &app) {
		return app.Message()
	}
	return "its workflow was ended from outside"
}
