package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"go.temporal.io/sdk/activity"
)

// CommitUpdate commits an update: it writes the checkpoint, moves the head, and closes the history and the event log.
// It may run more than once.
func (a *Activities) CommitUpdate(ctx context.Context, in deployments.CommitInput) (deployments.UpdateInfo, error) {
	defer heartbeat.Beat(ctx)()
	info, err := a.settled(ctx, in)
	return info, failure.UntilStored(err)
}

// executes reports, as CodeConflict, that another workflow run than that of this activity has the stack for an update.
func (a *Activities) executes(ctx context.Context, u deployments.UpdateName) error {
	run := executing(ctx, u)
	if run == "" {
		return nil
	}
	h, err := a.Store.Head(ctx, u.StackName)
	if err == nil {
		err = executedBy(h, u, run)
	}
	return err
}

// executing returns the workflow run that must have the stack for an update; "" if there is none. A recovery ends what
// others have begun.
func executing(ctx context.Context, u deployments.UpdateName) string {
	if u.Number() == 0 || !activity.IsActivity(ctx) ||
		deployments.PresentName(activity.GetInfo(ctx).ActivityType.Name) == deployments.ActivityRecoverUpdate {
		return ""
	}
	return workflowRun(ctx)
}

func executedBy(h statestore.Head, u deployments.UpdateName, run string) error {
	if run != "" && h.Active != nil && h.Active.Version == u.Version && h.Active.Run != run {
		return deployments.Errorf(deployments.CodeConflict, "another run of its workflow executes update %s", u)
	}
	return nil
}

func (a *Activities) settled(ctx context.Context, in deployments.CommitInput) (deployments.UpdateInfo, error) {
	request, err := a.requestOf(ctx, in.Update)
	if err != nil {
		return deployments.UpdateInfo{}, err
	}
	e := &ending{acts: a, in: in, request: request}
	var said sync.WaitGroup
	if s := a.sessions.Find(in.Update); s != nil {
		said.Go(func() { s.Flush(ctx) })
	}
	defer said.Wait()
	if err := e.commit(ctx); err != nil {
		return e.info, err
	}
	if !e.over {
		said.Wait() // what has ended has no more events, but for its end
		if err := a.Store.Updates.PutInfo(ctx, e.info); err != nil {
			return e.info, err
		}
	}
	told := a.tell(ctx, e.info, request)
	err = errors.Join(a.append(ctx, in.Update, e.last()+1, []deployments.WatchEvent{{End: &e.info}}), <-told)
	if err == nil {
		go a.tidy(context.WithoutCancel(ctx), in, request)
	}
	return e.info, err
}

// ending is an update that is being ended.
type ending struct {
	acts    *Activities
	in      deployments.CommitInput
	request deployments.UpdateRequest
	info    deployments.UpdateInfo
	over    bool // it had ended before
}

// last returns the number of the last part of the Run's stream before the end: the save that the commit makes has the
// summary, too.
func (e *ending) last() int {
	if e.in.LastSave != nil {
		return e.in.Saves
	}
	return e.in.Saves + 1
}

// commit writes the update's checkpoint, its last events and its summary, and then moves the head. One that had ended
// keeps its end.
func (e *ending) commit(ctx context.Context) error {
	if !changesHead(e.in.Update, e.request) {
		return e.endPreview(ctx)
	}
	run, active := executing(ctx, e.in.Update), false
	f := statestore.Finish{
		Scope: statestore.Scope{Update: e.in.Update, Base: e.in.Base, Secrets: e.request.Secrets},
		Saves: e.in.Saves, Integrity: e.in.Result.IntegrityError,
		Check: func(h statestore.Head) error {
			e.info, e.over = deployments.UpdateInfo{}, false
			active = h.Active != nil && h.Active.Version == e.in.Update.Version
			return executedBy(h, e.in.Update, run)
		},
		Beside: func(ctx context.Context) error {
			if err := e.begin(ctx, active && run != ""); err != nil || e.over {
				return err
			}
			return e.record(ctx)
		},
	}
	if s := e.in.LastSave; s != nil {
		f.Saves, f.Extra, f.Carried = s.Number-1, s.Deltas, true
	}
	written, err := e.acts.Store.Finish(ctx, f)
	if err != nil && e.info.Update.Version == "" && deployments.CodeOf(err) == deployments.CodeConflict {
		return e.endedBefore(ctx, err)
	}
	if !e.over {
		e.info.Resources, e.info.Committed = written.Resources, written.Version != 0
	}
	return err
}

// endedBefore returns nil if the update has ended before, and otherwise why it cannot be committed.
func (e *ending) endedBefore(ctx context.Context, why error) (err error) {
	info, err := e.acts.Store.Updates.Info(ctx, e.in.Update)
	if err == nil && !info.Ended.IsZero() {
		e.info, e.over = info, true
		return nil
	}
	if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
		return err
	}
	return why
}

// begin finds out since when the update runs, and whether it has ended before. One that has the stack has not: the head
// moves before that is noted.
func (e *ending) begin(ctx context.Context, active bool) error {
	u := e.in.Update
	started := time.Now().UTC()
	if since := e.acts.startedHere(u); active && since != nil {
		started = *since
	} else {
		info, err := e.acts.Store.Updates.Info(ctx, u)
		if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
			return err
		}
		if err == nil && !info.Ended.IsZero() {
			e.info, e.over = info, true
			return nil
		}
		if err == nil && !info.Started.IsZero() {
			started = info.Started
		}
	}
	if e.in.Result.Status == "" {
		return deployments.Errorf(deployments.CodeConflict, "update %s is not committed without a result", u)
	}
	e.info = running(u, e.request, started)
	result := e.in.Result
	e.info.Status, e.info.Error, e.info.Changes, e.info.Next = string(result.Status), result.Sentence(), result.Changes,
		e.in.Next
	if result.NamesNothing {
		e.info.Code = deployments.CodeInvalid
	}
	e.info.Ended = time.Now().UTC()
	return nil
}

// record counts the minutes of an update that ends, and writes what is left of its log before its end.
func (e *ending) record(ctx context.Context) error {
	recording, records := panics.NewGroup(ctx, "recording the end of an update")
	recording.Go(func() error { return e.acts.countMinutes(records, e.info, e.request) })
	recording.Go(func() error { return e.sayAll(records) })
	return recording.Wait()
}

// startedHere returns since when an update runs, if this worker has claimed it; else nil.
func (a *Activities) startedHere(u deployments.UpdateName) *time.Time {
	if s := a.sessions.Find(u); s != nil {
		return s.RunsSince()
	}
	return nil
}

// sayAll writes what is left of the log of an update before its end: the events of the last save, if it was not made,
// and the summary. The deltas of that save are in the Run's result until they are in the checkpoint.
func (e *ending) sayAll(ctx context.Context) error {
	summary := summaryOf(e.info, e.in.Result)
	s := e.in.LastSave
	if s == nil {
		return e.acts.append(ctx, e.in.Update, e.last(), append(opening(e.last(), e.request.Config), summary...))
	}
	return e.acts.append(ctx, e.in.Update, e.last(), append(e.acts.shown(ctx, *s), summary...))
}

// endPreview is commit for what makes no version.
func (e *ending) endPreview(ctx context.Context) error {
	var h statestore.Head
	reading, reads := panics.NewGroup(ctx, "ending a preview")
	reading.Go(func() (err error) {
		h, err = e.acts.Store.Head(reads, e.in.Update.StackName)
		return err
	})
	reading.Go(func() error { return e.begin(reads, false) })
	if err := reading.Wait(); err != nil || e.over {
		return err
	}
	e.info.Resources = h.Resources
	return e.record(ctx)
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
			MaybeCorrupt: r.IntegrityError != "", DurationSeconds: int(info.Took().Seconds()),
			ResourceChanges: changes, IsPreview: info.DryRun, Result: operationResults[r.Status], PolicyPacks: r.Policies,
		},
	}}}
}
