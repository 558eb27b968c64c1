package recovery

import (
	"context"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/updates"
)

// Activities are the activities that recover updates whose workflows were closed from outside. Every exported method is
// an activity; register the struct as a whole. Each translates its errors for Temporal exactly once, by translate.
type Activities struct {
	recovery *Recovery
	acts     *activities.Activities
}

// Activities returns the activities of recovery. Those of updates save and commit what is recovered.
func (r *Recovery) Activities(acts *activities.Activities) *Activities { return &Activities{r, acts} }

// AwaitWorkflow returns when the update's workflow is closed or does not exist.
func (a *Activities) AwaitWorkflow(ctx context.Context, u deployments.UpdateName) error {
	return translate(a.awaitClosed(ctx, deployments.UpdateWorkflowID(u)))
}

// awaitClosed returns when a workflow is closed or does not exist.
func (a *Activities) awaitClosed(ctx context.Context, id string) error {
	for {
		activity.RecordHeartbeat(ctx)
		description, err := a.recovery.Client.DescribeWorkflowExecution(ctx, id, "")
		switch {
		case notFound(err):
			return nil
		case err == nil && description.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}

// TerminateRun terminates the Run of an update whose own workflow is closed, and waits until it is closed. It returns
// the task queue of the worker that hosts the update, or "" if no worker does.
func (a *Activities) TerminateRun(ctx context.Context, u deployments.UpdateName) (string, error) {
	host, err := a.stop(ctx, u)
	return host, translate(err)
}

func (a *Activities) stop(ctx context.Context, u deployments.UpdateName) (string, error) {
	id := deployments.RunWorkflowID(u)
	if err := a.recovery.Client.TerminateWorkflow(ctx, id, "", "its update is closed"); err != nil && !notFound(err) {
		return "", err
	}
	if err := a.awaitClosed(ctx, id); err != nil {
		return "", err
	}
	claim, err := a.recovery.Store.ClaimOf(ctx, u)
	if deployments.CodeOf(err) == deployments.CodeConflict || deployments.CodeOf(err) == deployments.CodeNotFound {
		return "", nil
	}
	return statestore.HostOf(claim.Writer), err
}

// RecoverUpdate commits an update in place of its workflow. It reads from the history of the Run what was done and not
// saved, and writes it to the next checkpoint. Steps with an unknown outcome become pending operations, which the next
// update settles. It may be repeated: an update that has ended stays as it is.
func (a *Activities) RecoverUpdate(ctx context.Context, in deployments.RecoverInput) (deployments.Recovered, error) {
	defer heartbeat.Beat(ctx)()
	if in.Discard {
		return a.recoverOrDiscard(ctx, in)
	}
	out, err := a.resume(ctx, in)
	return out, translate(err)
}

// resume recovers an update and decides whether it continues as another version: only if it was ended to be migrated
// and was not cancelled.
func (a *Activities) resume(ctx context.Context, in deployments.RecoverInput) (out deployments.Recovered, err error) {
	run, err := a.claimedBy(ctx, in.Update)
	if err != nil {
		return out, err
	}
	migrated, cancelled, err := a.recovery.migrated(ctx, in.Update, run)
	if err != nil {
		return out, err
	}
	out.Request, err = a.recovery.Store.Updates.Request(ctx, in.Update)
	out.Request.Profile = nil // what continues it begins, and so takes the newest version
	switch {
	case err != nil && deployments.CodeOf(err) != deployments.CodeNotFound:
		return out, err
	case !migrated || err != nil: // or it had not started
		in.Next = ""
	case cancelled:
		in.Next, in.Status, in.Error = "", engine.StatusCancelled, "the update was cancelled"
	case out.Request.Secrets.NeedsClient() && !in.RequestKnown: // only the client can find the key
		in.Next, in.Error = "", buildGone+"; run it again"
	default:
		in.Status, in.Error = deployments.StatusMigrated, buildGone
	}
	if out.UpdateInfo, err = a.recover(ctx, in); err == nil && out.Request.Lease != nil {
		out.Settle, err = activities.Settling(ctx, a.acts, out.UpdateInfo)
	}
	return out, err
}

// claimedBy returns the workflow run that has the stack for an update; "" when the update does not have it.
func (a *Activities) claimedBy(ctx context.Context, u deployments.UpdateName) (string, error) {
	head, err := a.recovery.Store.Head(ctx, u.StackName)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return "", nil
	}
	if err != nil || head.Active == nil || head.Active.Version != u.Version {
		return "", err
	}
	return head.Active.Run, nil
}

// recover ends an update by what the store knows of it: one that has ended keeps its end, one that never claimed the
// stack is only entered in the history, an import or restore is interrupted, and any other is salvaged and committed.
func (a *Activities) recover(ctx context.Context, in deployments.RecoverInput) (deployments.UpdateInfo, error) {
	store := a.recovery.Store
	info, err := store.Updates.Info(ctx, in.Update)
	if err == nil && !info.Ended.IsZero() {
		if err := store.Current(ctx, in.Update.StackName); err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
			return info, err
		}
		return info, a.releaseClaim(ctx, in.Update) // its claim may have been written after its end
	}
	if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
		return info, err
	}
	head, err := store.Head(ctx, in.Update.StackName)
	switch {
	case err != nil && deployments.CodeOf(err) != deployments.CodeNotFound:
		return info, err
	case err != nil, head.Version != in.Update.Number() && (head.Active == nil ||
		head.Active.Version != in.Update.Version):
		return a.endUnclaimed(ctx, in, info)
	}
	switch request, err := store.Updates.Request(ctx, in.Update); {
	case err == nil && request.Lease != nil:
		ended, err := a.acts.EndLease(ctx, deployments.LeaseEnd{Update: in.Update, Status: statusOf(in), Error: in.Error})
		return ended.UpdateInfo, err
	case err != nil && deployments.CodeOf(err) == deployments.CodeNotFound:
		if head.Active != nil && !head.Active.WithoutRequest() {
			return info, deployments.Errorf(deployments.CodeFormat,
				"the request of update %s is missing, so what it has done cannot be taken "+
					"into the state: put back the last good copy of the object (%w)", in.Update, err)
		}
		return a.interrupt(ctx, in)
	case err != nil:
		return info, err
	}
	run := ""
	if head.Active != nil {
		run = head.Active.Run
	}
	rest, err := a.recovery.salvageOf(ctx, in.Update, run)
	if err != nil {
		return info, err
	}
	for _, save := range rest.Saves {
		if err := a.acts.Save(ctx, save); err != nil {
			return info, err
		}
	}
	settled := deployments.CommitInput{Update: in.Update, Base: head.Version, Saves: rest.Last, Next: in.Next}
	if rest.result != nil {
		settled.Next = ""
		settled.Result = *rest.result
	} else {
		settled.Result = engine.Result{Status: statusOf(in), Error: in.Error, Changes: rest.Changes}
	}
	return a.acts.CommitUpdate(ctx, settled)
}

// releaseClaim releases the claim of an update, if it still has one, without a new version: the head stays. A writer
// that still runs then fails to commit.
func (a *Activities) releaseClaim(ctx context.Context, u deployments.UpdateName) error {
	claim, err := a.recovery.Store.ClaimOf(ctx, u)
	if deployments.CodeOf(err) == deployments.CodeConflict || deployments.CodeOf(err) == deployments.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return a.recovery.Store.Commit(ctx, claim, statestore.Written{})
}

// interrupt ends an import or a restore, which claims a stack without a request. If it is still running, it loses its
// claim, unless it commits first.
func (a *Activities) interrupt(ctx context.Context, in deployments.RecoverInput) (deployments.UpdateInfo, error) {
	info := deployments.UpdateInfo{Update: in.Update, Kind: engine.KindImport, Started: time.Now().UTC()}
	if err := a.releaseClaim(ctx, in.Update); err != nil {
		return info, err
	}
	head, err := a.recovery.Store.Head(ctx, in.Update.StackName)
	if err != nil || head.Version == in.Update.Number() {
		return info, err
	}
	in.Error = "the import or restore was interrupted; do it again"
	return a.endUnclaimed(ctx, in, info)
}

// endUnclaimed ends an update that never claimed its stack and so has changed nothing.
func (a *Activities) endUnclaimed(
	ctx context.Context, in deployments.RecoverInput, info deployments.UpdateInfo,
) (deployments.UpdateInfo, error) {
	if info.Started.IsZero() {
		request, err := a.recovery.Store.Updates.Request(ctx, in.Update)
		if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
			return info, err
		}
		info = deployments.UpdateInfo{
			Update: in.Update, Kind: request.Kind, Message: request.Message, Initiator: request.Initiator,
			Started: time.Now().UTC(), Unbegun: request.Lease != nil, // its client was refused, and has executed nothing
		}
	}
	info.Status, info.Error, info.Next, info.Ended = string(statusOf(in)), in.Error, in.Next, time.Now().UTC()
	return info, a.enter(ctx, info)
}

// AddToHistory stores an update that ended without claiming its stack; its log is its end. A repeated one
// has no effect, and neither has that of an earlier stack of the name.
func (a *Activities) AddToHistory(ctx context.Context, in deployments.Entry) error {
	head, err := a.recovery.Store.Head(ctx, in.Info.Update.StackName)
	if err != nil || head.ID != in.StackID {
		return translate(err)
	}
	entered, err := a.recovery.Store.Updates.Info(ctx, in.Info.Update)
	if err == nil && !entered.Ended.IsZero() {
		in.Info = entered
	} else if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
		return translate(err)
	}
	return translate(a.enter(ctx, in.Info))
}

func (a *Activities) enter(ctx context.Context, info deployments.UpdateInfo) error {
	if err := a.recovery.Store.Updates.PutInfo(ctx, info); err != nil {
		return err
	}
	data, err := eventlog.Encode([]deployments.WatchEvent{{End: &info}})
	if err != nil {
		return err
	}
	part := updates.Part{Update: info.Update, Stream: eventlog.RunStream, Number: 1}
	return a.recovery.Store.Updates.AppendEvents(ctx, part, data)
}

func statusOf(in deployments.RecoverInput) engine.Status {
	if in.Status == "" {
		return engine.StatusFailed
	}
	return in.Status
}
