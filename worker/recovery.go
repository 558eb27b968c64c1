package worker

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"google.golang.org/grpc/codes"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/workflows"
)

// recovery are the activities that look after updates whose workflows were closed from outside.
type recovery struct {
	connection *Connection
	acts       *activities.Activities
}

// edge translates an error for Temporal: what may pass is tried again, everything else is for the Stack to tell of.
func edge(err error) error {
	said := serviceerror.ServiceError(nil)
	if errors.As(err, &said) {
		code := deployments.CodeInternal
		if passes[said.Status().Code()] {
			code = deployments.CodeUnavailable
		}
		err = deployments.Errorf(code, "Temporal answers: %s", said.Status().Message())
	}
	return activities.Failure(err)
}

// passes tells of which answers of Temporal another may follow.
var passes = map[codes.Code]bool{
	codes.Unavailable: true, codes.ResourceExhausted: true, codes.DeadlineExceeded: true, codes.Aborted: true,
	codes.Canceled: true,
	codes.Unknown:  true, codes.Internal: true,
}

// Ended returns once the update's workflow is closed, or not known.
func (r *recovery) Ended(ctx context.Context, u deployments.UpdateName) error {
	return edge(r.closed(ctx, deployments.UpdateWorkflowID(u)))
}

// closed returns once a workflow is closed, or not known.
func (r *recovery) closed(ctx context.Context, id string) error {
	for {
		activity.RecordHeartbeat(ctx)
		description, err := r.connection.Client.DescribeWorkflowExecution(ctx, id, "")
		switch {
		case unknown(err):
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

// unknown tells that there is no such workflow, or none that runs.
func unknown(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}

// Stop makes sure that the Run of an update, whose own workflow is closed, is closed, too, and gives the task queue of
// the worker that hosts the update; empty when none does.
func (r *recovery) Stop(ctx context.Context, u deployments.UpdateName) (string, error) {
	host, err := r.stop(ctx, u)
	return host, edge(err)
}

func (r *recovery) stop(ctx context.Context, u deployments.UpdateName) (string, error) {
	id := deployments.RunWorkflowID(u)
	if err := r.connection.Client.TerminateWorkflow(ctx, id, "", "its update is closed"); err != nil && !unknown(err) {
		return "", err
	}
	if err := r.closed(ctx, id); err != nil {
		return "", err
	}
	claim, err := r.connection.Store.ClaimOf(ctx, u)
	if deployments.CodeOf(err) == deployments.CodeConflict || deployments.CodeOf(err) == deployments.CodeNotFound {
		return "", nil
	}
	return activities.HostOf(claim.Writer), err
}

// Recover ends an update in the place of its workflow. The history of its Run tells what had been done and was not
// saved yet, which becomes part of the next checkpoint; steps of which nobody knows the end stand there as pending
// operations, which the next update looks into.
func (r *recovery) Recover(ctx context.Context, in deployments.RecoverInput) (deployments.Recovered, error) {
	defer activities.Beat(ctx)()
	out, err := r.recovered(ctx, in)
	return out, edge(err)
}

func (r *recovery) recovered(ctx context.Context, in deployments.RecoverInput) (out deployments.Recovered, err error) {
	moved, cancelled, err := r.connection.moved(ctx, in.Update)
	if err != nil {
		return out, err
	}
	out.Request, err = r.connection.Store.Request(ctx, in.Update)
	switch {
	case err != nil && deployments.CodeOf(err) != deployments.CodeNotFound:
		return out, err
	case !moved || err != nil: // or it had not begun
		in.Next = ""
	case cancelled:
		in.Next, in.Status, in.Error = "", engine.StatusCancelled, "the update was cancelled"
	case out.Request.Secrets.Type == "passphrase" && !in.Held: // nobody but its client knows it
		in.Next, in.Error = "", goneBuild+"; run it again, with the stack's passphrase"
	default:
		in.Status, in.Error = deployments.StatusMoved, goneBuild
	}
	out.UpdateInfo, err = r.recover(ctx, in)
	return out, err
}

func (r *recovery) recover(ctx context.Context, in deployments.RecoverInput) (deployments.UpdateInfo, error) {
	store := r.connection.Store
	info, err := store.Info(ctx, in.Update)
	if err == nil && !info.Ended.IsZero() {
		return info, r.giveBack(ctx, in.Update) // a claim may have landed late
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
		return r.withdraw(ctx, in, info)
	}
	switch _, err := store.Request(ctx, in.Update); {
	case err != nil && deployments.CodeOf(err) == deployments.CodeNotFound:
		if head.Active != nil && !head.Active.WithoutRequest() {
			return info, deployments.Errorf(deployments.CodeFormat,
				"the request of update %s is missing, so what it has done cannot be taken "+
					"into the state: put back the last good copy of the object (%w)", in.Update, err)
		}
		return r.interrupt(ctx, in)
	case err != nil:
		return info, err
	}
	ended, err := r.connection.endingOf(ctx, in.Update)
	if err != nil {
		return info, err
	}
	for _, save := range ended.Saves {
		if err := r.acts.Save(ctx, save); err != nil {
			return info, err
		}
	}
	settled := deployments.SettledInput{Update: in.Update, Base: head.Version, Saves: ended.Last, Next: in.Next}
	if ended.result != nil {
		settled.Next = ""
		settled.Result = *ended.result
	} else {
		settled.Result = engine.Result{Status: statusOf(in), Error: in.Error, Changes: ended.Changes}
	}
	return r.acts.Settled(ctx, settled)
}

// giveBack takes the stack from an update that is over, if it still has it. The head stays where it is.
func (r *recovery) giveBack(ctx context.Context, u deployments.UpdateName) error {
	claim, err := r.connection.Store.ClaimOf(ctx, u)
	if deployments.CodeOf(err) == deployments.CodeConflict || deployments.CodeOf(err) == deployments.CodeNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return r.connection.Store.Settle(ctx, claim, statestore.Written{})
}

// interrupt ends an import or a restore, which has a stack without a request. One that is still at it loses the stack,
// unless it is faster.
func (r *recovery) interrupt(ctx context.Context, in deployments.RecoverInput) (deployments.UpdateInfo, error) {
	info := deployments.UpdateInfo{Update: in.Update, Kind: engine.KindImport, Started: time.Now().UTC()}
	if err := r.giveBack(ctx, in.Update); err != nil {
		return info, err
	}
	head, err := r.connection.Store.Head(ctx, in.Update.StackName)
	if err != nil || head.Version == in.Update.Number() {
		return info, err
	}
	in.Error = "the import or restore was interrupted; do it again"
	return r.withdraw(ctx, in, info)
}

// withdraw ends an update that never had its stack: there is nothing to keep of it.
func (r *recovery) withdraw(
	ctx context.Context, in deployments.RecoverInput, info deployments.UpdateInfo,
) (deployments.UpdateInfo, error) {
	if info.Started.IsZero() {
		request, err := r.connection.Store.Request(ctx, in.Update)
		if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
			return info, err
		}
		info = deployments.UpdateInfo{
			Update: in.Update, Kind: request.Kind, Message: request.Message, Initiator: request.Initiator,
			Started: time.Now().UTC(),
		}
	}
	info.Status, info.Error, info.Next, info.Ended = string(statusOf(in)), in.Error, in.Next, time.Now().UTC()
	return info, r.enter(ctx, info)
}

// Enter makes an update that ended without having had its stack part of the history, with its end as its log.
func (r *recovery) Enter(ctx context.Context, info deployments.UpdateInfo) error {
	return edge(r.enter(ctx, info))
}

func (r *recovery) enter(ctx context.Context, info deployments.UpdateInfo) error {
	if err := r.connection.Store.PutInfo(ctx, info); err != nil {
		return err
	}
	return closeLog(ctx, r.connection.Store, info, 0)
}

func statusOf(in deployments.RecoverInput) engine.Status {
	if in.Status == "" {
		return engine.StatusFailed
	}
	return in.Status
}

// ending is how a Run is brought to its end in the place of its workflow.
type ending struct {
	workflows.Ending
	// result is what the Run came to, if it had ended when its update was closed.
	result *engine.Result
}

// endingOf reads from the history of an update's Run how it ends.
func (c *Connection) endingOf(ctx context.Context, u deployments.UpdateName) (ending, error) {
	h, err := c.recordOf(ctx, deployments.RunWorkflowID(u))
	switch {
	case unknown(err): // it was never started, or Temporal does not keep it any more: what was saved is all there is
		last, err := c.Store.LastSave(ctx, u)
		return ending{Ending: workflows.Ending{Last: last}}, err
	case err != nil:
		return ending{}, err
	}
	var outcome error // why the store could not tell
	left := func(op, round int) (engine.StepFinished, bool) {
		if known, ok := h.known(op); ok {
			return known, true
		}
		found, err := c.Store.Outcome(ctx, u, op, round)
		if outcome = errors.Join(outcome, err); found == nil || err != nil {
			return engine.StepFinished{}, false
		}
		return *found, true
	}
	out, err := h.result()
	if out != nil || err != nil {
		end := ending{Ending: workflows.Ending{Last: out.Saves}, result: &out.Result}
		if out.Rest != nil {
			end.Saves = []deployments.SaveInput{*out.Rest}
		}
		return end, err
	}
	remains, err := h.replay()
	if err != nil {
		if c.config.Log != nil {
			c.config.Log.Warn("The next update looks into what is not known.", "cannot",
				"replay the Run of "+u.String(), "error", err)
		}
		end, err := h.fold(left)
		return ending{Ending: end}, errors.Join(err, outcome)
	}
	end := remains.Close(left)
	return ending{Ending: end}, outcome
}
