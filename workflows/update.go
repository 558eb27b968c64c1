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
	in      deployments.UpdateInput
	claims  int
	claimed deployments.Claimed
	queue   string   // of the workers that may host it, where that is not this workflow's own
	left    []string // workers that hosted it before
	run     workflow.ChildWorkflowFuture

	cancelled   bool
	stopClaim   workflow.CancelFunc
	stopProgram workflow.CancelFunc
	programming bool // the program runs, or will again
	lost        int  // epochs in a row that were lost without progress
	reached     deployments.Reached
	vouched     string // the worker that was found alive when the Run had lost it
	broken      error
}

// Update carries one update out. It never continues as new. An error means that it could not settle: its stack then
// recovers it from what is saved and from its history.
func (w *Workflows) Update(ctx workflow.Context, in deployments.UpdateInput) (_ deployments.UpdateInfo, err error) {
	belongs(ctx)
	defer defective(ctx, &err)
	stop := ctx.Done()
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if in.Withdrawn != "" {
		return withdrawn(ctx, in)
	}
	u := &update{in: in}
	u.listen(ctx, stop)
	if err := u.claim(ctx); err != nil {
		return deployments.UpdateInfo{}, u.refused(err)
	}
	if err := u.startRun(ctx, w.settings.ForceContinue); err != nil {
		return deployments.UpdateInfo{}, err
	}
	lead(ctx, in.Update)
	if u.claimed.HasProgram {
		u.programming = true
		workflow.Go(ctx, u.programs)
	}
	err = workflow.Await(ctx, func() bool { return u.run.IsReady() || u.broken != nil || overtaken(ctx) })
	if overtaken(ctx) {
		u.broken = wasReset(ctx)
	}
	if err = errors.Join(err, u.broken); err != nil {
		return deployments.UpdateInfo{}, err // and the Run ends with its parent
	}
	var out deployments.RunOutput
	if err := u.run.Get(ctx, &out); err != nil {
		ended, ok := OutputOf(err)
		if !ok {
			return deployments.UpdateInfo{}, unsettled(err)
		}
		out = ended
	}
	return u.end(ctx, out)
}

// unsettled is the error of an update that is left to its stack. It is made anew: what is sealed in that of the Run
// opens only there.
func unsettled(err error) error {
	kind := string(deployments.CodeInternal)
	if failure := (*temporal.ApplicationError)(nil); errors.As(err, &failure) {
		kind = failure.Type()
	}
	return temporal.NewNonRetryableApplicationError(clip(sentence(err), messageBytes), kind, nil)
}

// withdrawn ends an update that never began. It becomes part of the stack's history, so that its number is not given
// out again.
func withdrawn(ctx workflow.Context, in deployments.UpdateInput) (deployments.UpdateInfo, error) {
	now := workflow.Now(ctx)
	info := deployments.UpdateInfo{
		Update: in.Update, Kind: in.Request.Kind, DryRun: in.Request.DryRun, Status: string(engine.StatusCancelled),
		Message: in.Request.Message, Initiator: in.Request.Initiator, Started: now, Ended: now, Error: in.Withdrawn,
	}
	if in.Next != "" {
		info.Status, info.Next = string(deployments.StatusMoved), in.Next
	}
	if !in.Since.IsZero() { // else its stack is of a time when nobody did that
		info.Started = in.Since
		enter := onShared(ctx, "enter it in the history")
		if err := workflow.ExecuteActivity(enter, deployments.ActivityEnter, info).Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Info("The update is not in the history.", "error", err)
		}
	}
	if err := report(ctx, info.Status); err != nil {
		return info, err
	}
	return info, ending(engine.Status(info.Status), info.Error, info)
}

// report makes the result searchable.
func report(ctx workflow.Context, status string) error {
	return workflow.UpsertTypedSearchAttributes(ctx, resultKey.ValueSet(status))
}

// claim finds a worker to host the update: the first one, or another.
func (u *update) claim(ctx workflow.Context) error {
	ctx, cancel := workflow.WithCancel(onShared(ctx, "find a worker"))
	defer cancel()
	u.claims++
	in := deployments.ClaimInput{Update: u.in.Update, Request: u.in.Request, Epoch: u.claims}
	var c deployments.Claimed
	for {
		future := workflow.ExecuteActivity(u.among(ctx), deployments.ActivityClaim, in)
		if u.stopClaim = cancel; u.cancelled && u.claims == 1 {
			cancel()
		}
		c = deployments.Claimed{} // what is decoded into it leaves what it has
		if err := future.Get(ctx, &c); err != nil {
			return err
		}
		if c.Queue == "" {
			break
		}
		u.queue = c.Queue // its organization has got workers of its own since this workflow was started
	}
	if u.claims == 1 {
		u.claimed = c
	}
	u.claimed.Worker = c.Worker
	return nil
}

// among makes the options of an activity those of one that is for the workers that may host the update.
func (u *update) among(ctx workflow.Context) workflow.Context {
	if u.queue == "" {
		return ctx
	}
	return workflow.WithTaskQueue(ctx, u.queue)
}

// refused is the error of an update that found no worker.
func (u *update) refused(err error) error {
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
		Retries: u.claimed.Retries, ForceContinue: forceContinue,
	})
	return u.run.GetChildWorkflowExecution().Get(ctx, nil)
}

// end settles the update and lets everyone know.
func (u *update) end(ctx workflow.Context, out deployments.RunOutput) (deployments.UpdateInfo, error) {
	if u.stopProgram != nil {
		u.stopProgram() // a run that ended early needs no more of it
	}
	var info deployments.UpdateInfo
	in := deployments.SettledInput{Update: u.in.Update, Base: u.claimed.Base, Saves: out.Saves, Rest: out.Rest,
		Result: out.Result}
	if err := workflow.ExecuteActivity(u.among(onLong(ctx, "settle")), deployments.ActivitySettled, in).Get(ctx,
		&info); err != nil {
		return info, err
	}
	if u.in.Update.Number() > 0 {
		stack := deployments.StackWorkflowID(u.in.Update.StackName)
		finished := deployments.UpdateFinished{Update: u.in.Update, Result: out.Result}
		// A stack that is gone reads the head when it comes back.
		_ = workflow.SignalExternalWorkflow(ctx, stack, "", deployments.SignalFinished, finished).Get(ctx, nil)
	}
	conclude(ctx, out.Result)
	err := report(ctx, string(out.Result.Status))
	release(ctx, u.in.Update, append(u.left, u.claimed.Worker))
	_ = workflow.Await(ctx, func() bool { return !u.programming })
	if err != nil {
		return info, err
	}
	return info, ending(out.Result.Status, out.Result.Error, info)
}

// release ends the update's plugins on workers, where those are still there.
func release(ctx workflow.Context, u deployments.UpdateName, workers []string) {
	var released []workflow.Future
	for _, worker := range workers {
		ctx := onWorker(ctx, worker, &once)
		ctx = workflow.WithScheduleToStartTimeout(workflow.WithStartToCloseTimeout(ctx, short), releaseStart)
		released = append(released, workflow.ExecuteActivity(ctx, deployments.ActivityRelease,
			deployments.ReleaseInput{Update: u}))
	}
	for _, r := range released {
		if err := r.Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Info("A worker was not released.", "error", err)
		}
	}
}

// listen passes on what is said to the update while it is at work.
func (u *update) listen(ctx workflow.Context, stop workflow.Channel) {
	cancels := workflow.GetSignalChannel(ctx, deployments.SignalCancel)
	answers := workflow.GetSignalChannel(ctx, deployments.SignalResolve)
	losses := workflow.GetSignalChannel(ctx, deployments.SignalLost)
	reached := workflow.GetSignalChannel(ctx, deployments.SignalReached)
	workflow.Go(ctx, func(ctx workflow.Context) {
		stop.Receive(ctx, nil)
		u.cancel(ctx, engine.Cancelled{})
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var c engine.Cancelled
			cancels.Receive(ctx, &c)
			u.cancel(ctx, c)
		}
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var a engine.Resolved
			answers.Receive(ctx, &a)
			u.tell(ctx, deployments.SignalResolve, a)
		}
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var l deployments.WorkerLost
			losses.Receive(ctx, &l)
			u.replace(ctx, l.Worker)
		}
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var at deployments.Reached
			reached.Receive(ctx, &at)
			u.count(at)
		}
	})
}

// cancel ends the update gently, or at once: its Run starts nothing new, its program is ended.
func (u *update) cancel(ctx workflow.Context, c engine.Cancelled) {
	u.cancelled = true
	if u.run == nil && u.stopClaim != nil {
		u.stopClaim()
	}
	u.tell(ctx, deployments.SignalCancel, c)
	if u.stopProgram != nil {
		u.stopProgram()
	}
}

// tell signals the Run, once there is one. A Run that has ended needs nothing.
func (u *update) tell(ctx workflow.Context, signal string, v any) {
	if err := workflow.Await(ctx, func() bool { return u.run != nil }); err != nil {
		return
	}
	_ = u.run.SignalChildWorkflow(ctx, signal, v).Get(ctx, nil)
}
