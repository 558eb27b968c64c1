package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// update is an Update workflow.
type update struct {
	in            deployments.UpdateInput
	claims        int
	claimed       deployments.Claimed
	queue         string   // of the workers that may host it; empty for this workflow's own
	formerWorkers []string // former hosts
	run           workflow.ChildWorkflowFuture

	cancelled       bool
	forced          bool // the cancel is a forced one
	stopClaim       workflow.CancelFunc
	stopProgram     workflow.CancelFunc
	programActive   bool // the program runs, or will run again
	fruitlessEpochs int  // lost in a row without progress
	reached         deployments.Reached
	confirmedAlive  string // the worker that was found alive after the Run reported it lost
	failure         error
}

// Update executes one update. It never continues as new. An error means that it did not commit: its stack then recovers
// it from its saves and its history.
func (w *Workflows) Update(ctx workflow.Context, in deployments.UpdateInput) (_ deployments.UpdateInfo, err error) {
	requireRevision(ctx)
	ctx = withNames(ctx)
	defer panicToError(ctx, &err)
	stop := ctx.Done()
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if in.Withdrawn != "" {
		return endWithdrawn(ctx, in)
	}
	u := &update{in: in}
	u.listen(ctx, stop)
	if err := u.claim(ctx); err != nil {
		return deployments.UpdateInfo{}, u.claimError(err)
	}
	if err := u.startRun(ctx, w.settings.ForceContinue); err != nil {
		return deployments.UpdateInfo{}, err
	}
	linkToRun(ctx, in.Update)
	if u.claimed.HasProgram {
		u.programActive = true
		workflow.Go(ctx, u.programs)
	}
	err = workflow.Await(ctx, func() bool { return u.run.IsReady() || u.failure != nil || endsAfterReset(ctx) })
	if endsAfterReset(ctx) {
		u.failure = resetError(ctx)
	}
	if err = errors.Join(err, u.failure); err != nil {
		return deployments.UpdateInfo{}, err // the Run ends with its parent
	}
	var out deployments.RunOutput
	if err := u.run.Get(ctx, &out); err != nil {
		ended, ok := OutputOf(err)
		if !ok {
			return deployments.UpdateInfo{}, runError(err)
		}
		out = ended
	}
	return u.commit(ctx, out)
}

// runError returns the error of an update that its stack recovers. It is a new error because the details of the Run's
// are sealed for the Run.
func runError(err error) error {
	kind := string(deployments.CodeInternal)
	if failure := (*temporal.ApplicationError)(nil); errors.As(err, &failure) {
		kind = failure.Type()
	}
	return temporal.NewNonRetryableApplicationError(clip(messageOf(err), messageBytes), kind, nil)
}

// endWithdrawn ends an update that never began. It enters the update in the store, so that its version is not given out
// again.
func endWithdrawn(ctx workflow.Context, in deployments.UpdateInput) (deployments.UpdateInfo, error) {
	now := workflow.Now(ctx)
	info := deployments.UpdateInfo{
		Update: in.Update, Kind: in.Request.Kind, DryRun: in.Request.DryRun, Status: string(engine.StatusCancelled),
		Message: in.Request.Message, Initiator: in.Request.Initiator, Started: now, Ended: now, Error: in.Withdrawn,
		Unbegun: true, Trace: in.Request.Trace,
	}
	if in.Next != "" {
		info.Status, info.Next = string(deployments.StatusMigrated), in.Next
	}
	if !in.Since.IsZero() { // empty when an older release queued it
		info.Started = in.Since
		enter := onShared(ctx, "add it to the history")
		entry := deployments.Entry{Info: info}
		if s := in.Request.Submitted; s != nil {
			entry.StackID = s.StackID
		}
		if err := execute(enter, deployments.ActivityAddToHistory, entry).Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Info("The update is not in the history.", "error", err)
		}
	}
	if err := setResult(ctx, info.Status); err != nil {
		return info, err
	}
	return info, failedError(engine.Status(info.Status), info.Error, info)
}

// setResult sets the search attribute Result.
func setResult(ctx workflow.Context, status string) error {
	return workflow.UpsertTypedSearchAttributes(ctx, resultKey.ValueSet(status))
}

// claim finds a worker that hosts the update, at first and after each lost one.
func (u *update) claim(ctx workflow.Context) error {
	ctx, cancel := workflow.WithCancel(onShared(ctx, "find a worker"))
	defer cancel()
	u.claims++
	in := deployments.ClaimInput{Update: u.in.Update, Request: u.in.Request, Number: u.claims}
	var c deployments.Claimed
	for {
		future := execute(u.onHostQueue(ctx), deployments.ActivityClaimStack, in)
		if u.stopClaim = cancel; u.cancelled && u.claims == 1 {
			cancel()
		}
		c = deployments.Claimed{} // decoding leaves fields that are not in the payload
		if err := future.Get(ctx, &c); err != nil {
			return err
		}
		if c.Queue == "" {
			break
		}
		u.queue = c.Queue // its organization has got its own workers since this workflow started
	}
	if u.claims == 1 {
		u.claimed = c
	}
	u.claimed.Worker = c.Worker
	return nil
}

// onHostQueue sends an activity to the queue of the workers that may host the update.
func (u *update) onHostQueue(ctx workflow.Context) workflow.Context {
	if u.queue == "" {
		return ctx
	}
	return workflow.WithTaskQueue(ctx, u.queue)
}

// claimError returns the error of an update that found no worker.
func (u *update) claimError(err error) error {
	if temporal.IsCanceledError(err) {
		return temporal.NewNonRetryableApplicationError("the update was cancelled before it began",
			string(deployments.CodeCancelled), nil)
	}
	return err
}

func (u *update) startRun(ctx workflow.Context, forceContinue int) error {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            deployments.RunWorkflowID(u.in.Update),
		TaskQueue:             u.queue,
		StaticSummary:         clip(Summary(u.in.Update, u.in.Request), summaryBytes),
		TypedSearchAttributes: SearchAttributes(u.in.Update, u.in.Request),
	})
	u.run = workflow.ExecuteChildWorkflow(ctx, deployments.WorkflowRun, deployments.RunInput{
		Update: u.in.Update, Goal: u.claimed.Goal, Worker: u.claimed.Worker, Base: u.claimed.Base,
		Retries: u.claimed.Retries, Trace: u.in.Request.Trace, ForceContinue: forceContinue,
		Names: namesSince(ctx),
	})
	return u.run.GetChildWorkflowExecution().Get(ctx, nil)
}

// commit ends the update: it commits the state, signals the stack and releases the workers.
func (u *update) commit(ctx workflow.Context, out deployments.RunOutput) (deployments.UpdateInfo, error) {
	if u.stopProgram != nil {
		u.stopProgram() // a run that ended early needs no more of it
	}
	var info deployments.UpdateInfo
	in := deployments.CommitInput{Update: u.in.Update, Base: u.claimed.Base, Saves: out.Saves, LastSave: out.LastSave,
		Result: out.Result}
	committing := u.onHostQueue(onLong(ctx, "commit update "+u.in.Update.Version))
	if err := execute(committing, deployments.ActivityCommitUpdate, in).Get(ctx, &info); err != nil {
		return info, err
	}
	if u.in.Update.Number() > 0 {
		stack := deployments.StackWorkflowID(u.in.Update.StackName)
		finished := deployments.UpdateFinished{Update: u.in.Update, Result: out.Result}
		// A Stack that has ended reads the head when it starts again.
		_ = workflow.SignalExternalWorkflow(ctx, stack, "", nameIn(ctx, deployments.SignalFinished), finished).Get(ctx, nil)
	}
	showResult(ctx, out.Result)
	err := setResult(ctx, string(out.Result.Status))
	release(ctx, u.in.Update, append(u.formerWorkers, u.claimed.Worker))
	_ = workflow.Await(ctx, func() bool { return !u.programActive })
	if err != nil {
		return info, err
	}
	return info, failedError(out.Result.Status, out.Result.Sentence(), info)
}

// release ends the update's plugins on the workers that are still there.
func release(ctx workflow.Context, u deployments.UpdateName, workers []string) {
	var released []workflow.Future
	for _, worker := range workers {
		ctx := onWorker(ctx, worker, &noRetry)
		o := workflow.GetActivityOptions(ctx)
		o.ScheduleToStartTimeout, o.StartToCloseTimeout, o.Summary = releaseStart, short, "end its plugins"
		ctx = workflow.WithActivityOptions(ctx, o)
		released = append(released, execute(ctx, deployments.ActivityEndSession,
			deployments.ReleaseInput{Update: u}))
	}
	for _, r := range released {
		if err := r.Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Info("A worker was not released.", "error", err)
		}
	}
}

// listen passes signals on while the update runs.
func (u *update) listen(ctx workflow.Context, stop workflow.Channel) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		stop.Receive(ctx, nil)
		u.cancel(ctx, engine.Cancelled{})
	})
	onSignal(ctx, deployments.SignalCancel, u.cancel)
	onSignal(ctx, deployments.SignalResolve, func(ctx workflow.Context, a engine.Resolved) {
		u.signalRun(ctx, deployments.SignalResolve, a)
	})
	onSignal(ctx, deployments.SignalLost, func(ctx workflow.Context, l deployments.WorkerLost) {
		u.handleWorkerLost(ctx, l.Worker)
	})
	onSignal(ctx, deployments.SignalReached, func(_ workflow.Context, at deployments.Reached) { u.recordProgress(at) })
}

// cancel stops the program and passes the cancel to the Run, which starts nothing new. A repeated cancel is not passed
// on: each signal takes room in the history, which has an end.
func (u *update) cancel(ctx workflow.Context, c engine.Cancelled) {
	repeated := u.cancelled && (u.forced || !c.Forced)
	u.cancelled, u.forced = true, u.forced || c.Forced
	if u.run == nil && u.stopClaim != nil {
		u.stopClaim()
	}
	if !repeated {
		u.signalRun(ctx, deployments.SignalCancel, c)
	}
	if u.stopProgram != nil {
		u.stopProgram()
	}
}

// signalRun signals the Run once it has started. A Run that has ended needs no signal.
func (u *update) signalRun(ctx workflow.Context, signal string, v any) {
	if err := workflow.Await(ctx, func() bool { return u.run != nil }); err != nil {
		return
	}
	_ = u.run.SignalChildWorkflow(ctx, signal, v).Get(ctx, nil)
}
