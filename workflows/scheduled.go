package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// What the search attribute Drift of a run says.
const (
	driftFound = "found"
	driftNone  = "none"
)

// scheduled is a Scheduled workflow.
type scheduled struct {
	in  deployments.ScheduledInput
	out deployments.ScheduledOutput
}

// Scheduled is one run of a schedule. Its updates go through the stack's queue like everyone else's. When one of them
// does not succeed, it returns an error, which is what pauses the schedule.
func (w *Workflows) Scheduled(
	ctx workflow.Context, in deployments.ScheduledInput,
) (deployments.ScheduledOutput, error) {
	s := &scheduled{in: in}
	err := s.run(ctx)
	status := engine.StatusSucceeded
	switch {
	case temporal.IsCanceledError(err):
		return s.out, err
	case err != nil:
		status = engine.StatusFailed
	}
	if reported := report(ctx, string(status)); err == nil {
		err = reported
	}
	return s.out, s.failed(err)
}

func (s *scheduled) run(ctx workflow.Context) error {
	if s.in.Schedule.Kind != deployments.ScheduleDrift {
		_, err := s.update(ctx, false)
		return err
	}
	look, err := s.update(ctx, true)
	if err != nil {
		return err
	}
	if err := s.compile(ctx, deployments.CompileInput{Look: look}); err != nil {
		return err
	}
	if s.out.Drifted == 0 || !s.in.Schedule.Remediate {
		return nil
	}
	remedy, err := s.update(ctx, false)
	if err != nil {
		return err
	}
	return s.compile(ctx, deployments.CompileInput{Look: look, Remedy: &remedy})
}

// update submits an update and follows it to its end; look is the one that looks for drift. Each has a request id of
// its own, made from the run's: whatever is repeated, it is one update.
func (s *scheduled) update(ctx workflow.Context, look bool) (deployments.UpdateName, error) {
	id := workflow.GetInfo(ctx).OriginalRunID
	if look {
		id += "-look"
	}
	var accepted deployments.Accepted
	in := deployments.SubmitInput{ScheduledInput: s.in, RequestID: id, Look: look}
	if err := workflow.ExecuteActivity(onScheduled(ctx, "submit"), deployments.ActivitySubmit, in).Get(ctx,
		&accepted); err != nil {
		return deployments.UpdateName{}, err
	}
	u := accepted.Update
	s.out.Updates = append(s.out.Updates, u)
	following := workflow.WithHeartbeatTimeout(workflow.WithStartToCloseTimeout(
		onShared(ctx, "wait for update "+u.Version), forever), heartbeat)
	var info deployments.UpdateInfo
	if err := workflow.ExecuteActivity(following, deployments.ActivityFollow, u).Get(ctx, &info); err != nil {
		return u, err
	}
	if info.Status != string(engine.StatusSucceeded) {
		return u, unsuccessful(info)
	}
	return u, nil
}

// unsuccessful is the error of an update that did not succeed.
func unsuccessful(info deployments.UpdateInfo) error {
	text := fmt.Sprintf("%s was %s", info.Update, info.Status)
	if info.Status == string(engine.StatusFailed) {
		text = fmt.Sprintf("%s failed", info.Update)
	}
	if info.Error != "" {
		text += ": " + info.Error
	}
	return errors.New(text)
}

// compile makes the report of a look for drift, and shows what it says.
func (s *scheduled) compile(ctx workflow.Context, in deployments.CompileInput) error {
	var found deployments.Found
	err := workflow.ExecuteActivity(onShared(ctx, "compile what drifted"), deployments.ActivityCompile, in).Get(ctx,
		&found)
	if err != nil {
		return err
	}
	s.out.Drifted = found.Drifted
	workflow.SetCurrentDetails(ctx, clip(found.Details, detailsBytes))
	attribute := driftNone
	if found.Drifted > 0 {
		attribute = driftFound
	}
	return workflow.UpsertTypedSearchAttributes(ctx, driftKey.ValueSet(attribute))
}

// failed makes the run's error, with what it has done as a detail.
func (s *scheduled) failed(err error) error {
	if err == nil {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(sentence(err), string(engine.StatusFailed), nil, s.out)
}
