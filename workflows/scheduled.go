package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// The values of the search attribute Drift.
const (
	driftFound = "found"
	driftNone  = "none"
)

// scheduled is a Scheduled workflow.
type scheduled struct {
	in  deployments.ScheduledInput
	out deployments.ScheduledOutput
}

// Scheduled is one run of a schedule. Its updates go through the stack's queue like any other. It returns an error when
// one of them does not succeed; that pauses the schedule.
func (w *Workflows) Scheduled(
	ctx workflow.Context, in deployments.ScheduledInput,
) (deployments.ScheduledOutput, error) {
	ctx = withNames(ctx)
	s := &scheduled{in: in}
	err := s.run(ctx)
	status := engine.StatusSucceeded
	switch {
	case temporal.IsCanceledError(err):
		return s.out, err
	case err != nil:
		status = engine.StatusFailed
	}
	if reported := setResult(ctx, string(status)); err == nil {
		err = reported
	}
	return s.out, s.failed(err)
}

func (s *scheduled) run(ctx workflow.Context) error {
	if s.in.Schedule.Kind != deployments.ScheduleDrift {
		if _, err := s.update(ctx, false); err != nil || !s.in.Schedule.RemoveStack {
			return err
		}
		return execute(onShared(ctx, "remove the stack"), deployments.ActivityRemoveStack,
			s.in).Get(ctx, nil)
	}
	check, err := s.update(ctx, true)
	if err != nil {
		return err
	}
	if err := s.report(ctx, deployments.DriftReportInput{Check: check}); err != nil {
		return err
	}
	if s.out.Drifted == 0 || !s.in.Schedule.Remediate {
		return nil
	}
	remediation, err := s.update(ctx, false)
	if err != nil {
		return err
	}
	return s.report(ctx, deployments.DriftReportInput{Check: check, Remediation: &remediation})
}

// update submits an update, or a drift check, and follows it to its end. Its request id is made from the run's id, so a
// repeated submission is the same update.
func (s *scheduled) update(ctx workflow.Context, driftCheck bool) (deployments.UpdateName, error) {
	id := workflow.GetInfo(ctx).OriginalRunID
	if driftCheck {
		id += "-look"
	}
	var accepted deployments.Accepted
	in := deployments.SubmitInput{ScheduledInput: s.in, RequestID: id, DriftCheck: driftCheck}
	if err := execute(onScheduled(ctx, "submit the update"), deployments.ActivitySubmitUpdate, in).Get(ctx,
		&accepted); err != nil {
		return deployments.UpdateName{}, err
	}
	u := accepted.Update
	s.out.Updates = append(s.out.Updates, u)
	following := workflow.WithHeartbeatTimeout(workflow.WithStartToCloseTimeout(
		onShared(ctx, "wait for update "+u.Version), longestWait), heartbeat)
	var info deployments.UpdateInfo
	if err := execute(following, deployments.ActivityAwaitUpdate, u).Get(ctx, &info); err != nil {
		return u, err
	}
	if info.Status != string(engine.StatusSucceeded) {
		return u, unsuccessful(info)
	}
	return u, nil
}

// unsuccessful returns the error of an update that did not succeed.
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

// report makes the report of a drift check and shows its summary.
func (s *scheduled) report(ctx workflow.Context, in deployments.DriftReportInput) error {
	var found deployments.DriftSummary
	err := execute(onShared(ctx, "report the drift"), deployments.ActivityReportDrift, in).Get(ctx,
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

// failed returns the error of the run, with its output as a detail.
func (s *scheduled) failed(err error) error {
	if err == nil {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(messageOf(err), string(engine.StatusFailed), nil, s.out)
}
