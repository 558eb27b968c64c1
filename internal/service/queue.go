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
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore/leases"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/deployctl/deployctl/workflows"
)

// Stack describes a stack, with its active and waiting updates.
func (s *Service) Stack(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	info, err := s.stack(ctx, name, false)
	if err == nil {
		s.detail(ctx, info.Active)
	}
	return info, err
}

// StackBriefly describes a stack for whoever needs to know which update has it, but not what waits for that, nor how
// far it is: it waits for no workflow then.
func (s *Service) StackBriefly(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	return s.stack(ctx, name, true)
}

func (s *Service) stack(
	ctx context.Context, name deployments.StackName, brief bool,
) (deployments.StackInfo, error) {
	type answer struct {
		queue deployments.StackInfo
		err   error
	}
	var info deployments.StackInfo
	known, asked := make(chan struct{}), make(chan answer, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // Temporal is asked while the head is read
		var a answer
		a.err = panics.Do("looking for the queue of a stack", func() (err error) {
			a.queue, err = s.queuedOr(ctx, name, func(ctx context.Context) (deployments.StackInfo, error) {
				if <-known; info.Active == nil {
					return deployments.StackInfo{}, nil
				}
				return s.infoFromHead(ctx, name)
			})
			return err
		})
		asked <- a
	}()
	var err error
	info, err = s.store.Stack(ctx, name)
	if close(known); err != nil || brief && info.Active != nil {
		return info, err
	}
	a := <-asked
	if a.err != nil {
		return info, a.err
	}
	queue := a.queue
	info.Active, info.Queued = queue.Active, queue.Queued
	return info, nil
}

// detail adds to a stack's active update, if there is one, what its own workflows know: the creates that wait for a
// resolution, whether it ends, and of one that its client executes when that was last heard of. It adds nothing if they
// do not answer in time.
func (s *Service) detail(ctx context.Context, active *deployments.UpdateInfo) {
	if active == nil {
		return
	}
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if active.Lease != nil {
		var held deployments.ClientLease
		if s.query(soon, deployments.UpdateWorkflowID(active.Update), deployments.QueryLease, &held) == nil {
			active.Lease = &held
		}
		return
	}
	var p deployments.Progress
	if s.query(soon, deployments.RunWorkflowID(active.Update), deployments.QueryProgress, &p) == nil {
		active.Waiting, active.Cancelling = p.Waiting, p.Cancelling
	}
}

// queueTimeout is how long to wait for a stack's workflow when its head would do: until it is known whether Temporal
// answers.
const queueTimeout = 4 * time.Second

// queuedOrHead is queued, but if the workflow does not answer in time, for lack of a worker, it describes the stack by
// its head.
func (s *Service) queuedOrHead(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	return s.queuedOr(ctx, name, s.byHead(name))
}

// queuedOr is queuedOrHead for who knows otherwise what the head says.
func (s *Service) queuedOr(
	ctx context.Context, name deployments.StackName, head byHead,
) (deployments.StackInfo, error) {
	soon, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	info, err := s.queuedUnless(soon, name, head)
	if err == nil || ctx.Err() != nil || soon.Err() == nil && deployments.CodeOf(err) != deployments.CodeNoWorker {
		return info, err
	}
	if away := s.Away(); away != nil {
		return info, away
	}
	return head(ctx)
}

// byHead describes a stack by its head.
type byHead func(context.Context) (deployments.StackInfo, error)

func (s *Service) byHead(name deployments.StackName) byHead {
	return func(ctx context.Context) (deployments.StackInfo, error) { return s.infoFromHead(ctx, name) }
}

// queued queries a stack's workflow. If that does not run, no update waits, and the active one is that of the head.
func (s *Service) queued(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	return s.queuedUnless(ctx, name, s.byHead(name))
}

// queuedUnless is queued for who knows otherwise what the head says.
func (s *Service) queuedUnless(
	ctx context.Context, name deployments.StackName, head byHead,
) (deployments.StackInfo, error) {
	var info deployments.StackInfo
	err := s.query(ctx, deployments.StackWorkflowID(name), deployments.QueryQueue, &info)
	if errors.Is(err, errClosed) {
		return head(ctx)
	}
	if errors.Is(err, errNoWorker) {
		queue, failed := s.Organizations.TaskQueue(ctx, name.Organization)
		if failed != nil {
			return info, failed
		}
		return info, s.noWorker(ctx, queue)
	}
	return info, failure("ask for the stack's queue", err)
}

// errClosed: the workflow does not run. errNoWorker: Temporal answers, but no worker does.
var errClosed, errNoWorker = errors.New("the workflow is closed, or not known"), errors.New("no worker answers")

// queryTimeout is how long a worker may take to answer: more than the five seconds for which Temporal tries the worker
// that had the workflow last.
const queryTimeout = 8 * time.Second

// query queries a running workflow; a closed one would answer with its last state.
func (s *Service) query(ctx context.Context, id, query string, answer any) error {
	soon, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	got, err := s.temporal.QueryWorkflowWithOptions(soon, &client.QueryWorkflowWithOptionsRequest{
		WorkflowID: id, QueryType: query, QueryRejectCondition: enums.QUERY_REJECT_CONDITION_NOT_OPEN,
	})
	var unknown *serviceerror.NotFound
	var nobody *serviceerror.FailedPrecondition // no worker has polled yet
	switch {
	case errors.As(err, &unknown) || err == nil && got.QueryRejected != nil:
		return errClosed
	case errors.As(err, &nobody) || timedOut(err) && s.Away() == nil:
		return errNoWorker
	case err != nil:
		return err
	}
	return got.QueryResult.Get(answer)
}

// timedOut reports whether Temporal or a worker did not answer in time.
func timedOut(err error) bool {
	var timeout *serviceerror.DeadlineExceeded
	return errors.As(err, &timeout) || errors.Is(err, context.DeadlineExceeded)
}

// infoFromHead describes a stack whose workflow does not run.
func (s *Service) infoFromHead(
	ctx context.Context, name deployments.StackName,
) (info deployments.StackInfo, err error) {
	head, err := s.Head(ctx, name)
	if err != nil || head.Active == nil {
		return info, err
	}
	active, err := s.Updates.Info(ctx, *head.Contract(name).Active)
	if err == nil && active.Ended.IsZero() {
		info.Active = &active
		if head.Active.Writer == leases.Writer {
			active.Lease = &deployments.ClientLease{}
		}
	}
	return info, nil //nolint:nilerr // no update has begun
}

// checkKnown checks that an update without a log is running, waits in its stack's queue, or has just left it.
func (s *Service) checkKnown(ctx context.Context, u deployments.UpdateName) error {
	_, missing := s.temporal.DescribeWorkflowExecution(ctx, deployments.UpdateWorkflowID(u), "")
	if missing == nil {
		return nil
	}
	queue, err := s.queued(ctx, u.StackName)
	if deployments.CodeOf(err) == deployments.CodeNoWorker && u.Number() > 0 {
		return nil // the watcher will get its end
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

// position returns the position of an update in the queue; nil when it does not wait.
func (w *watcher) position(info deployments.StackInfo) *deployments.Progress {
	for i, waiting := range info.Queued {
		if waiting.Update == w.update {
			return &deployments.Progress{Position: i + 1, Behind: info.Active}
		}
	}
	return nil
}

// sendUnbegunEnd sends the end of an update that ended before it began: a withdrawn one, which has a result but no log,
// or a preview that no worker took, which is not recovered. It gives up an update that is unknown, or has it recovered
// if it has its stack. The log is read after the result is there, because an update with a log closes the log first.
func (w *watcher) sendUnbegunEnd(ctx context.Context, queue deployments.StackInfo) (bool, error) {
	id := deployments.UpdateWorkflowID(w.update)
	described, err := w.temporal.DescribeWorkflowExecution(ctx, id, "")
	if unknown := (*serviceerror.NotFound)(nil); errors.As(err, &unknown) {
		if w.missed++; w.missed < patience {
			return false, nil
		}
		if queue.Active != nil && queue.Active.Update == w.update {
			return false, w.recoverLost(ctx)
		}
		return false, deployments.Errorf(deployments.CodeNotFound,
			"%s is not waiting any more, and never began: its stack's workflow was ended from outside; ask for it "+
				"again", w.update)
	}
	w.missed = 0
	closed := described.GetWorkflowExecutionInfo()
	if err != nil || closed.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return false, nil //nolint:nilerr // the next attempt may succeed
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
			return false, nil // its stack recovers it, or the next attempt succeeds
		}
		info.Error = reason(why)
		return true, w.send(deployments.WatchEvent{End: &info})
	}
	log, err := w.Updates.ReadEvents(ctx, updates.Part{Update: w.update, Stream: eventlog.RunStream, Number: 1}, 1)
	if err != nil || len(log) > 0 {
		return false, err
	}
	return true, w.send(deployments.WatchEvent{End: &info})
}

// recoverLost has the stack recover an update that Temporal does not know any more: nothing else would, until the next
// command for the stack. The watch goes on meanwhile: an update that has only not begun yet is not recovered, and the
// stack answers at its end.
func (w *watcher) recoverLost(ctx context.Context) error {
	w.missed = 0
	if !w.recovering.CompareAndSwap(false, true) {
		return nil
	}
	if !w.lost {
		w.lost = true
		if err := w.send(serviceMessage(w.update, "Temporal has no workflow of "+w.update.String()+": if it has lost it, "+
			"what the update has saved is recovered.")); err != nil {
			return err
		}
	}
	go func() {
		defer w.recovering.Store(false)
		_ = panics.Do("recovering update "+w.update.String(), func() error { // the stack says why it cannot
			_, err := w.Recover(ctx, deployments.RecoverRequest{Stack: w.update.StackName})
			return err
		})
	}()
	return nil
}

// reason returns the message of a workflow's error without the text that Temporal adds.
func reason(err error) string {
	if app := (*temporal.ApplicationError)(nil); errors.As(err, &app) {
		return app.Message()
	}
	return "its workflow was ended from outside"
}
