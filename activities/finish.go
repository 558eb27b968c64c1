package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"go.temporal.io/sdk/activity"
)

// Settled commits an update: it writes the checkpoint, moves the head, and closes the history and the event log. It may
// run more than once.
func (a *Activities) Settled(ctx context.Context, in deployments.CommitInput) (deployments.UpdateInfo, error) {
	defer Beat(ctx)()
	var info deployments.UpdateInfo
	err := a.executes(ctx, in.Update)
	if err == nil {
		info, err = a.settled(ctx, in)
	}
	return info, failureUntilStored(err)
}

// executes reports, as CodeConflict, that another workflow run than that of this activity has the stack for an update.
// A recovery ends what others have begun.
func (a *Activities) executes(ctx context.Context, u deployments.UpdateName) error {
	if u.Number() == 0 || !activity.IsActivity(ctx) ||
		activity.GetInfo(ctx).ActivityType.Name == deployments.ActivityRecover {
		return nil
	}
	h, err := a.Store.Head(ctx, u.StackName)
	if err == nil && h.Active != nil && h.Active.Version == u.Version && h.Active.Run != workflowRun(ctx) {
		err = deployments.Errorf(deployments.CodeConflict, "another run of its workflow executes update %s", u)
	}
	return err
}

func (a *Activities) settled(ctx context.Context, in deployments.CommitInput) (deployments.UpdateInfo, error) {
	request, err := a.requestOf(ctx, in.Update)
	if err != nil {
		return deployments.UpdateInfo{}, err
	}
	info, err := a.Store.Info(ctx, in.Update)
	if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
		return info, err
	}
	var said sync.WaitGroup
	if s := a.find(in.Update); s != nil && s.log != nil {
		said.Go(func() { _ = s.log.Flush(ctx) }) // an error loses only output
	}
	defer said.Wait()
	if info.Ended.IsZero() {
		if in.Result.Status == "" {
			return info, deployments.Errorf(deployments.CodeConflict, "update %s is not committed without a result", in.Update)
		}
		info = running(in.Update, request, a.started(ctx, in.Update))
		if in.LastSave != nil {
			if err := a.save(ctx, *in.LastSave); err != nil {
				return info, err
			}
		}
		info.Status, info.Error, info.Changes, info.Next = string(in.Result.Status), in.Result.Sentence(), in.Result.Changes,
			in.Next
		if in.Result.NamesNothing {
			info.Code = deployments.CodeInvalid
		}
		info.Ended = time.Now().UTC()
		if err := a.countMinutes(ctx, info, request); err != nil {
			return info, err
		}
		summarized := a.summarize(ctx, in, summaryOf(info, in.Result))
		info.Resources, info.Committed, err = a.finish(ctx, in, request)
		if err = errors.Join(err, <-summarized); err != nil {
			return info, err
		}
		said.Wait() // what has ended has no more events, but for its end
		if err := a.Store.PutInfo(ctx, info); err != nil {
			return info, err
		}
	}
	told := a.tell(ctx, info, request)
	err = errors.Join(a.append(ctx, in.Update, in.Saves+2, []deployments.WatchEvent{{End: &info}}), <-told)
	if err == nil {
		go a.tidy(context.WithoutCancel(ctx), in, request)
	}
	return info, err
}

// summarize writes the last events before the end to the log of an update, while the caller does something else.
func (a *Activities) summarize(
	ctx context.Context, in deployments.CommitInput, last []deployments.WatchEvent,
) <-chan error {
	written := make(chan error, 1)
	go func() {
		written <- panics.Do("writing the summary of an update", func() error {
			return a.append(ctx, in.Update, in.Saves+1, last)
		})
	}()
	return written
}

// tell tells webhooks that an update has ended, while the caller does something else.
func (a *Activities) tell(
	ctx context.Context, info deployments.UpdateInfo, request deployments.UpdateRequest,
) <-chan error {
	told := make(chan error, 1)
	if a.Ended == nil {
		told <- nil
		return told
	}
	go func() {
		told <- panics.Do("telling webhooks", func() error { return a.Ended(ctx, info, request.Scheduled) })
	}()
	return told
}

// finish writes the update's checkpoint, moves the head, and returns the number of resources of the stack, and whether
// it has a new version.
func (a *Activities) finish(
	ctx context.Context, in deployments.CommitInput, request deployments.UpdateRequest,
) (int, bool, error) {
	if !changesHead(in.Update, request) {
		h, err := a.Store.Head(ctx, in.Update.StackName)
		return h.Resources, false, err
	}
	written, err := a.Store.Finish(ctx, statestore.Finish{
		Scope: statestore.Scope{Update: in.Update, Base: in.Base, Secrets: request.Secrets},
		Saves: in.Saves, Integrity: in.Result.IntegrityError,
	})
	return written.Resources, written.Version != 0, err
}

var operationResults = map[engine.Status]apitype.OperationResult{
	engine.StatusSucceeded: apitype.OperationResultSucceeded,
	engine.StatusFailed:    apitype.OperationResultFailed,
	engine.StatusCancelled: apitype.OperationResultCanceled,
}

// summaryOf returns the event that sums an update up, or none if another update goes on with it.
func summaryOf(info deployments.UpdateInfo, r engine.Result) []deployments.WatchEvent {
	if info.Next != "" {
		return nil
	}
	changes := map[apitype.OpType]int{}
	for kind, n := range r.Changes {
		changes[apitype.OpType(kind)] = n
	}
	return []deployments.WatchEvent{{Event: &apitype.EngineEvent{
		Timestamp: int(info.Ended.Unix()),
		SummaryEvent: &apitype.SummaryEvent{
			MaybeCorrupt: r.IntegrityError != "", DurationSeconds: int(info.Ended.Sub(info.Started).Seconds()),
			ResourceChanges: changes, IsPreview: info.DryRun, Result: operationResults[r.Status], PolicyPacks: r.Policies,
		},
	}}}
}
