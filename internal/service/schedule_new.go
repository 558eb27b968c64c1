package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/access"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/deployctl/deployctl/workflows"
)

// CreateSchedule creates a schedule in Temporal. Each run finds its template anew; here it is checked that there is
// one.
func (s *Service) CreateSchedule(ctx context.Context, sched deployments.Schedule) error {
	wanted, queue, err := s.newSchedule(ctx, sched)
	if err != nil {
		return err
	}
	if err := s.roomForSchedule(ctx, sched.Name.StackName); err != nil {
		return err
	}
	handle, err := s.temporal.ScheduleClient().Create(ctx, optionsOf(wanted.ScheduledInput, queue, wanted.Made))
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return deployments.Errorf(deployments.CodeExists, "%s has a schedule %s already: remove it with `deployctl "+
			"schedule rm %s`, or use another name (--name)",
			sched.Name.StackName, sched.Name.Name, sched.Name.Name)
	}
	if err != nil {
		return notPossible("make the schedule", err)
	}
	if err := s.store.Jobs.PutSchedule(ctx, wanted); err != nil {
		_ = handle.Delete(context.WithoutCancel(ctx)) // none of its runs would be admitted
		return err
	}
	return nil
}

// roomForSchedule rejects a schedule, as CodeConflict, when the stack has as many as it may. Some that were just made
// may not count yet.
func (s *Service) roomForSchedule(ctx context.Context, name deployments.StackName) error {
	names, err := s.scheduleNames(ctx, name)
	if err == nil && len(names) >= deployments.MaxSchedules {
		err = deployments.Errorf(deployments.CodeConflict, "%s has %d schedules already: remove one", name, len(names))
	}
	return err
}

// newSchedule checks a schedule that is to be created or changed, and returns what the bucket is to have of it and the
// task queue of its runs.
func (s *Service) newSchedule(
	ctx context.Context, sched deployments.Schedule,
) (wanted jobs.Schedule, queue string, err error) {
	if err := sched.Validate(); err != nil {
		return wanted, "", err
	}
	now := time.Now()
	if !sched.At.IsZero() && sched.At.Before(now) {
		return wanted, "", deployments.Errorf(deployments.CodeInvalid, "%s is over: name a time to come",
			sched.At.Format(time.RFC3339))
	}
	if err := s.checkOutlived(ctx, sched); err != nil {
		return wanted, "", err
	}
	if sched.Cron != "" {
		if _, err := cronTimes(sched.Cron); err != nil {
			return wanted, "", err
		}
	}
	head, err := s.Head(ctx, sched.Name.StackName)
	if err != nil {
		return wanted, "", err
	}
	if _, err := s.template(ctx, sched, !sched.Remediate && sched.Kind == deployments.ScheduleDrift); err != nil {
		return wanted, "", err
	}
	sched.Note, sched.Created, sched.Next, sched.Last = "", time.Time{}, time.Time{}, nil
	queue, err = s.Organizations.TaskQueue(ctx, sched.Name.Organization)
	return jobs.Schedule{
		ScheduledInput: deployments.ScheduledInput{Schedule: sched, StackID: head.ID, ID: rand.Text()},
		Made:           now, Since: now, Paused: sched.Paused,
	}, queue, err
}

// checkOutlived rejects a one-time schedule that is due after its creator's token expires.
func (s *Service) checkOutlived(ctx context.Context, sched deployments.Schedule) error {
	if sched.At.IsZero() || sched.Authority == nil {
		return nil
	}
	_, err := s.rights.AuthorityAt(ctx, *sched.Authority, sched.At)
	if errors.Is(err, access.ErrNotAllowed) {
		err = deployments.Errorf(deployments.CodeInvalid, "at %s the schedule would not run: %w; make it with a "+
			"token that lasts longer",
			sched.At.UTC().Format(time.RFC3339), err)
	}
	return err
}

// optionsOf returns the options of Temporal's schedule. Notes and memos are plaintext there, so everything else is in
// the workflow's sealed input.
func optionsOf(in deployments.ScheduledInput, queue string, now time.Time) client.ScheduleOptions {
	sched := in.Schedule
	id, attributes := deployments.ScheduleID(sched.Name), workflows.ScheduleAttributes(sched)
	o := client.ScheduleOptions{
		ID: id, TypedSearchAttributes: attributes, Spec: timesOf(sched, now), CatchupWindow: catchupWindow,
		Overlap: enums.SCHEDULE_OVERLAP_POLICY_SKIP, PauseOnFailure: true, Paused: sched.Paused,
		Action: &client.ScheduleWorkflowAction{
			ID: id, Workflow: deployments.WorkflowScheduled, TaskQueue: queue,
			Args:                  []any{in},
			TypedSearchAttributes: attributes, Priority: workflows.Priority(sched.Name.Organization, true),
			StaticSummary: fmt.Sprintf("%s of %s/%s, %s", sched.Kind, sched.Name.Project, sched.Name.Stack,
				sched.When()),
		},
	}
	if !sched.At.IsZero() {
		o.RemainingActions, o.CatchupWindow = 1, catchupWindowOnce
	}
	if sched.Paused {
		o.Note = pausedBy(sched.Initiator)
	}
	return o
}
