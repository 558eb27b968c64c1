package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// lease is a Lease workflow.
type lease struct {
	in      deployments.UpdateInput
	expires time.Time
	last    time.Time // when it ends at the latest
	heard   time.Time // the last word of the client
	begun   bool
	end     *deployments.LeaseEnd   // once it is known how the update ends
	info    *deployments.UpdateInfo // once that is committed
}

// Lease keeps a stack for an update that its client executes: it claims the stack, waits until the client completes the
// update, until somebody cancels it or until the lease expires, and commits what the client has written. An error means
// that it did not commit: its stack then recovers it, which commits the same.
func (w *Workflows) Lease(ctx workflow.Context, in deployments.UpdateInput) (_ deployments.UpdateInfo, err error) {
	defer panicToError(ctx, &err)
	ctx = withNames(ctx)
	stop := ctx.Done()
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if in.Withdrawn != "" {
		return endWithdrawn(ctx, in)
	}
	l := &lease{in: in}
	if err := l.listen(ctx, stop); err != nil {
		return deployments.UpdateInfo{}, err
	}
	begin := withBriefRetries(onShared(ctx, "claim the stack"))
	if err := execute(begin, deployments.ActivityBeginLease, in).Get(ctx, nil); err != nil {
		return deployments.UpdateInfo{}, err
	}
	now := workflow.Now(ctx)
	l.heard = now
	l.begun, l.expires, l.last = true, now.Add(in.Request.Lease.Duration), now.Add(deployments.LeaseLife)
	if err := l.await(ctx); err != nil {
		return deployments.UpdateInfo{}, err
	}
	return l.commit(ctx)
}

// listen handles renewals, the end and cancels.
func (l *lease) listen(ctx workflow.Context, stop workflow.Channel) error {
	cancels := workflow.GetSignalChannel(ctx, deployments.SignalCancel)
	workflow.Go(ctx, func(ctx workflow.Context) {
		var c engine.Cancelled // which must have been sealed
		cancels.Receive(ctx, &c)
		l.endAs(engine.StatusCancelled, "the update was cancelled")
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		stop.Receive(ctx, nil)
		l.endAs(engine.StatusCancelled, "the update was cancelled")
	})
	held := func() (deployments.ClientLease, error) {
		return deployments.ClientLease{Heard: l.heard, Ends: l.expires}, nil
	}
	if err := workflow.SetQueryHandler(ctx, deployments.QueryLease, held); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandler(ctx, deployments.UpdateRenew, l.handleRenew); err != nil {
		return err
	}
	return workflow.SetUpdateHandler(ctx, deployments.UpdateComplete, l.handleComplete)
}

// endAs records how the update ends. The first end counts.
func (l *lease) endAs(status engine.Status, text string) {
	if l.end == nil {
		l.end = &deployments.LeaseEnd{Update: l.in.Update, Status: status, Error: text}
	}
}

// handleRenew handles the update renew. No renewal lasts longer than the lease itself, and none beyond its last moment.
func (l *lease) handleRenew(ctx workflow.Context, d time.Duration) (time.Time, error) {
	if l.end != nil || !l.begun {
		return time.Time{}, clientError(deployments.Errorf(deployments.CodeForbidden, "the lease of update %s has ended",
			l.in.Update))
	}
	l.heard = workflow.Now(ctx)
	if d <= 0 || d > l.in.Request.Lease.Duration {
		d = l.in.Request.Lease.Duration
	}
	until := workflow.Now(ctx).Add(d)
	if until.After(l.last) {
		until = l.last
	}
	if until.After(l.expires) {
		l.expires = until
	}
	return l.expires, nil
}

// handleComplete handles the update complete: it returns once the state is committed.
func (l *lease) handleComplete(ctx workflow.Context, status engine.Status) (deployments.UpdateInfo, error) {
	ctx = disconnected(ctx)
	text := ""
	if status == engine.StatusFailed {
		text = "the update failed; its events say why"
	}
	l.endAs(status, text)
	if err := workflow.Await(ctx, func() bool { return l.info != nil }); err != nil {
		return deployments.UpdateInfo{}, err
	}
	return *l.info, nil
}

// await waits until the update has an end. The timer is started anew only when it fires, however often the lease was
// renewed until then.
func (l *lease) await(ctx workflow.Context) error {
	for l.end == nil {
		left := l.expires.Sub(workflow.Now(ctx))
		ended, err := workflow.AwaitWithTimeout(ctx, left, func() bool { return l.end != nil })
		if err != nil {
			return err
		}
		if !ended && !l.expires.After(workflow.Now(ctx)) {
			l.endAs(engine.StatusCancelled, "its lease expired: the client stopped renewing it")
		}
	}
	return nil
}

// commit commits what the client has written, and frees the stack.
func (l *lease) commit(ctx workflow.Context) (deployments.UpdateInfo, error) {
	var ended deployments.LeaseEnded
	committing := onLong(ctx, "commit what the client has written")
	if err := execute(committing, deployments.ActivityEndLease, *l.end).Get(ctx, &ended); err != nil {
		return ended.UpdateInfo, err
	}
	info := ended.UpdateInfo
	l.info = &info
	stack := deployments.StackWorkflowID(l.in.Update.StackName)
	finished := deployments.UpdateFinished{Update: l.in.Update, Result: engine.Result{
		Status: engine.Status(info.Status), Error: info.Error, Changes: info.Changes}, Settle: ended.Settle}
	// A Stack that has ended reads the head when it starts again.
	_ = workflow.SignalExternalWorkflow(ctx, stack, "", nameIn(ctx, deployments.SignalFinished), finished).Get(ctx, nil)
	if err := setResult(ctx, info.Status); err != nil {
		return info, err
	}
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return info, err
	}
	return info, failedError(engine.Status(info.Status), info.Error, info)
}
