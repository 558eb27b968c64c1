package service

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore/access"
)

// SubmitScheduled submits an update for a run of a schedule; CodeInvalid when the run is not admitted, CodeConflict
// when another update is changing the stack: the schedule repeats the result of that one, so the submission is retried
// instead of queued. A schedule whose stack is gone removes itself.
func (s *Service) SubmitScheduled(
	ctx context.Context, in deployments.SubmitInput, run workflow.Execution,
) (deployments.Accepted, error) {
	sched := in.Schedule
	head, err := s.Head(ctx, sched.Name.StackName)
	if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
		return deployments.Accepted{}, err
	}
	if err != nil || head.ID != in.StackID {
		if err := s.RemoveSchedule(ctx, sched.Name); err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
			return deployments.Accepted{}, err
		}
		return deployments.Accepted{}, deployments.Errorf(deployments.CodeNotFound,
			"the stack of the schedule %s is gone, and so the schedule was removed", sched.Name)
	}
	if err := s.admit(ctx, in, run); err != nil {
		return deployments.Accepted{}, err
	}
	if err := s.permit(ctx, sched, run); err != nil {
		return deployments.Accepted{}, err
	}
	if in.DriftCheck && head.Active != nil {
		return deployments.Accepted{}, deployments.Errorf(deployments.CodeConflict, "%s is being changed by update %s",
			sched.Name.StackName, head.Active.Version)
	}
	r, err := s.template(ctx, sched, in.DriftCheck)
	if err != nil {
		return deployments.Accepted{}, err
	}
	r.BaseVersion, r.OnBusy = &head.Version, deployments.OnBusyFail
	r.RequestID, r.Scheduled, r.Initiator = in.RequestID, true, "schedule "+sched.Name.Name
	r.Message = fmt.Sprintf("scheduled %s", sched.Kind)
	r.Authority = authorityOf(sched, r)
	r.Kind, r.DryRun = sched.Kind.Operation(), in.DriftCheck || sched.Kind == deployments.SchedulePreview
	switch {
	case sched.Kind == deployments.ScheduleDrift && !in.DriftCheck:
		// Drift is not in the state: the update sees it only after a refresh.
		r.Kind, r.Refresh = engine.KindUp, true
	case r.Kind == engine.KindRefresh:
		r.Refresh = false
	}
	sched.Options.Apply(&r)
	return s.Submit(ctx, r)
}

// permit rejects, as CodeInvalid, a run of a schedule whose creator may not deploy to the stack any more, and pauses
// the schedule.
func (s *Service) permit(ctx context.Context, sched deployments.Schedule, run workflow.Execution) error {
	if sched.Authority == nil || len(sched.Authority.Holders) == 0 {
		return noSchedule(sched.Name) // it was created without an authority
	}
	err := s.rights.Permit(ctx, *sched.Authority, sched.Name.StackName, deployments.AuditEntry{
		Request: run.RunID, Peer: "schedule", Method: "Schedules/RunSchedule", Subject: "name=" + sched.Name.Name,
	})
	if !errors.Is(err, access.ErrNotAllowed) {
		return err
	}
	if err := s.ScheduleFailed(ctx, run); err != nil {
		return err
	}
	return deployments.Errorf(deployments.CodeInvalid,
		"the schedule %s does not run: %w. Remove it with `deployctl schedule rm %s`, and have it created again by "+
			"someone who may deploy to %s",
		sched.Name.Name, err, sched.Name.Name, sched.Name.StackName)
}

// authorityOf returns the authority of a scheduled update: what both the creator of the schedule and the deployer of
// the program may do. Programs deployed by older releases have no authority and could read everything.
func authorityOf(sched deployments.Schedule, repeated deployments.UpdateRequest) *deployments.Authority {
	a := deployments.Everything()
	for _, of := range []*deployments.Authority{sched.Authority, repeated.Authority} {
		if of != nil {
			a = a.And(*of)
		}
	}
	return &a
}

// ScheduleRuns lists the runs of a schedule, latest first.
func (s *Service) ScheduleRuns(
	ctx context.Context, n deployments.ScheduleName, limit int,
) ([]deployments.ScheduleRun, error) {
	if _, err := s.describe(ctx, n); err != nil {
		return nil, err
	}
	found, err := s.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: int32(limit), Query: fmt.Sprintf("TemporalScheduledById = '%s'", deployments.ScheduleID(n)),
		//nolint:gosec // a small number
	})
	if err != nil {
		return nil, failure("list the runs", err)
	}
	var runs []deployments.ScheduleRun
	for _, w := range found.GetExecutions() {
		run := s.run(ctx, w.GetExecution().GetWorkflowId(), w.GetExecution().GetRunId())
		run.Started = w.GetStartTime().AsTime()
		runs = append(runs, run)
	}
	return runs, nil
}

// statusOf maps the status of a run's workflow.
var statusOf = map[enums.WorkflowExecutionStatus]string{
	enums.WORKFLOW_EXECUTION_STATUS_RUNNING:   deployments.StatusRunning,
	enums.WORKFLOW_EXECUTION_STATUS_COMPLETED: deployments.StatusSucceeded,
	enums.WORKFLOW_EXECUTION_STATUS_CANCELED:  deployments.StatusCancelled,
}

// run describes a run of a schedule, as far as Temporal still has it.
func (s *Service) run(ctx context.Context, id, execution string) deployments.ScheduleRun {
	run := deployments.ScheduleRun{ID: id, Status: deployments.StatusFailed}
	described, err := s.temporal.DescribeWorkflowExecution(ctx, id, execution)
	if err != nil {
		run.Error = "Temporal has no record of it any more"
		return run
	}
	info := described.GetWorkflowExecutionInfo()
	if status, ok := statusOf[info.GetStatus()]; ok {
		run.Status = status
	}
	run.Started = info.GetStartTime().AsTime()
	if info.GetCloseTime() == nil {
		return run
	}
	run.Ended = info.GetCloseTime().AsTime()
	var out deployments.ScheduledOutput
	err = s.temporal.GetWorkflow(ctx, id, execution).Get(ctx, &out)
	if failed := (*temporal.ApplicationError)(nil); errors.As(err, &failed) {
		run.Error = failed.Message()
		_ = failed.Details(&out) // the updates that began before it failed
	} else if err != nil {
		run.Error = "its workflow was ended from outside"
	}
	run.Updates, run.Drifted = out.Updates, out.Drifted
	return run
}
