package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/jobs"
)

const (
	// catchupWindow is how late a repeated run may begin after an outage of the service. A one-time run begins however
	// late: otherwise a stack that was to be destroyed would stay.
	catchupWindow, catchupWindowOnce = time.Hour, 365 * 24 * time.Hour
	// jitter spreads runs whose cron expressions name the same minute.
	jitter = 30 * time.Second
)

// notPossible returns the error about a schedule that Temporal does not take.
func notPossible(what string, err error) error {
	if invalid := (*serviceerror.InvalidArgument)(nil); errors.As(err, &invalid) {
		return deployments.Errorf(deployments.CodeInvalid, "there cannot be such a schedule: %s", invalid.Message)
	}
	return failure(what, err)
}

func pausedBy(initiator string) string { return "paused by " + initiator }

// CountSchedules counts the schedules of the namespace: the active and the paused ones.
func (s *Service) CountSchedules(ctx context.Context) (active, paused int, err error) {
	found, err := s.temporal.ScheduleClient().List(ctx, client.ScheduleListOptions{})
	for err == nil && found.HasNext() {
		var entry *client.ScheduleListEntry
		switch entry, err = found.Next(); {
		case err != nil:
		case entry.Paused:
			paused++
		default:
			active++
		}
	}
	return active, paused, err
}

// Schedules lists a stack's schedules by name: those that Temporal has, and those that it has lost, which only the
// bucket knows.
func (s *Service) Schedules(ctx context.Context, name deployments.StackName) ([]deployments.Schedule, error) {
	if _, err := s.Head(ctx, name); err != nil {
		return nil, err
	}
	names, err := s.scheduleNames(ctx, name)
	if err != nil {
		return nil, err
	}
	wanted, err := s.store.Jobs.ScheduleNames(ctx, name)
	if err != nil {
		return nil, err
	}
	names = append(names, wanted...)
	slices.SortFunc(names, func(a, b deployments.ScheduleName) int { return strings.Compare(a.Name, b.Name) })
	var list []deployments.Schedule
	for _, n := range slices.Compact(names) {
		sched, err := s.listedSchedule(ctx, n)
		if err != nil {
			return nil, err
		}
		if sched != nil {
			list = append(list, *sched)
		}
	}
	return list, nil
}

// listedSchedule describes a schedule for a list, also one that cannot be read; nil when it was removed meanwhile.
func (s *Service) listedSchedule(ctx context.Context, n deployments.ScheduleName) (*deployments.Schedule, error) {
	sched, err := s.Schedule(ctx, n)
	switch {
	case notFound(err):
		return nil, nil
	case deployments.CodeOf(err) == deployments.CodeFormat:
		return &deployments.Schedule{Name: n, Note: err.Error() + ": remove it with `deployctl schedule rm " +
			n.Name + "`, and create it again"}, nil
	}
	return &sched, err
}

// scheduleNames returns the names of a stack's schedules, sorted. A schedule that was just created may be missing.
func (s *Service) scheduleNames(ctx context.Context, name deployments.StackName) ([]deployments.ScheduleName, error) {
	found, err := s.temporal.ScheduleClient().List(ctx, client.ScheduleListOptions{
		Query: fmt.Sprintf("%s = '%s' AND %s = '%s' AND %s = '%s'",
			deployments.AttributeOrg, name.Organization, deployments.AttributeProject, name.Project,
			deployments.AttributeStack, name.Stack)})
	if err != nil {
		return nil, failure("list the schedules", err)
	}
	var names []deployments.ScheduleName
	for found.HasNext() {
		entry, err := found.Next()
		if err != nil {
			return nil, failure("list the schedules", err)
		}
		if short, ours := strings.CutPrefix(entry.ID, deployments.ScheduleID(
			deployments.ScheduleName{StackName: name})); ours {
			names = append(names, deployments.ScheduleName{StackName: name, Name: short})
		}
	}
	slices.SortFunc(names, func(a, b deployments.ScheduleName) int { return strings.Compare(a.Name, b.Name) })
	return names, nil
}

// Schedule describes a schedule.
func (s *Service) Schedule(ctx context.Context, n deployments.ScheduleName) (deployments.Schedule, error) {
	d, err := s.describe(ctx, n)
	if lost := (*lostError)(nil); errors.As(err, &lost) {
		return lost.schedule(), nil
	}
	if err != nil {
		return deployments.Schedule{}, err
	}
	var in deployments.ScheduledInput
	action, ok := d.Schedule.Action.(*client.ScheduleWorkflowAction)
	if !ok || len(action.Args) != 1 {
		return deployments.Schedule{}, deployments.Errorf(deployments.CodeFormat,
			"the schedule %s was made by a newer version of deployctl", n)
	}
	if payload, ok := action.Args[0].(*commonpb.Payload); ok {
		if err := s.readers.of(deployments.ScheduleID(n)).Data.FromPayload(payload, &in); err != nil {
			return in.Schedule, deployments.Errorf(deployments.CodeFormat, "the schedule %s cannot be read: %w", n, err)
		}
	}
	sched := in.Schedule
	sched.Created, sched.Paused = d.Info.CreatedAt, d.Schedule.State.Paused
	if times := d.Info.NextActionTimes; !sched.Paused && len(times) > 0 &&
		(!d.Schedule.State.LimitedActions || d.Schedule.State.RemainingActions > 0) {
		sched.Next = times[0]
	}
	if recent := d.Info.RecentActions; len(recent) > 0 && recent[len(recent)-1].StartWorkflowResult != nil {
		started := recent[len(recent)-1].StartWorkflowResult
		run := s.run(ctx, started.WorkflowID, started.FirstExecutionRunID)
		run.Started = recent[len(recent)-1].ActualTime
		sched.Last = &run
	}
	if sched.Paused {
		sched.Note = noteOf(n, d.Schedule.State.Note, sched.Last)
	}
	wanted, err := s.store.Jobs.Schedule(ctx, n)
	switch {
	case deployments.CodeOf(err) == deployments.CodeNotFound && err != nil, err == nil && wanted.ID != in.ID:
		sched.Note = noSchedule(n).Error()
	case err != nil:
		return sched, err
	case wanted.Made.Before(sched.Created): // Temporal had lost it
		sched.Created = wanted.Made
	}
	return sched, nil
}

// noteOf says why a schedule is paused. Temporal's own note names a failed run, whose error is sealed; it stays when
// the schedule is run by hand later.
func noteOf(n deployments.ScheduleName, note string, last *deployments.ScheduleRun) string {
	if !strings.Contains(note, deployments.ScheduleID(n)+"-") {
		return note
	}
	if last == nil || last.Error == "" {
		return fmt.Sprintf("paused because a run failed: `deployctl schedule runs %s` shows which", n.Name)
	}
	return fmt.Sprintf("paused because its run of %s failed: %s", last.Started.UTC().Format("2006-01-02 15:04:05 MST"),
		last.Error)
}

// describe describes a schedule in Temporal, which gets one that it has lost again.
func (s *Service) describe(ctx context.Context, n deployments.ScheduleName) (*client.ScheduleDescription, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	d, err := s.handle(ctx, n).Describe(ctx)
	if err = failure("find the schedule", err); notFound(err) {
		made, lost := s.makeAgain(ctx, n)
		if lost != nil {
			return nil, lost
		}
		if made {
			d, err = s.handle(ctx, n).Describe(ctx)
			err = failure("find the schedule", err)
		}
	}
	return d, unknownSchedule(n, err)
}

func (s *Service) handle(ctx context.Context, n deployments.ScheduleName) client.ScheduleHandle {
	return s.temporal.ScheduleClient().GetHandle(ctx, deployments.ScheduleID(n))
}

// unknownSchedule returns the error about a schedule that does not exist.
func unknownSchedule(n deployments.ScheduleName, err error) error {
	if err != nil && deployments.CodeOf(err) == deployments.CodeNotFound {
		return deployments.Errorf(deployments.CodeNotFound, "%s has no schedule %s; `deployctl schedule ls` lists "+
			"those it has", n.StackName, n.Name)
	}
	return err
}

// RemoveSchedule removes a schedule; its current update goes on.
func (s *Service) RemoveSchedule(ctx context.Context, n deployments.ScheduleName) error {
	if err := n.Validate(); err != nil {
		return err
	}
	_, wanted := s.store.Jobs.Schedule(ctx, n)
	if err := s.store.Jobs.DeleteSchedule(ctx, n); err != nil {
		return err
	}
	err := unknownSchedule(n, failure("remove the schedule", s.handle(ctx, n).Delete(ctx)))
	if wanted == nil && err != nil && deployments.CodeOf(err) == deployments.CodeNotFound {
		return nil // Temporal had lost it
	}
	return err
}

// PauseSchedule pauses or resumes a schedule.
func (s *Service) PauseSchedule(ctx context.Context, n deployments.ScheduleName, paused bool, initiator string) error {
	if err := n.Validate(); err != nil {
		return err
	}
	_, err := s.store.Jobs.ChangeSchedule(ctx, n, func(w *jobs.Schedule) error {
		if w.Paused && !paused {
			w.Since = later(w.Since, time.Now().Add(-skew)) // missed runs are not caught up
		}
		w.Paused = paused
		return nil
	})
	unknown := notFound(err)
	if err != nil && !unknown {
		return err
	}
	if unknown && !paused {
		if _, missing := s.describe(ctx, n); missing != nil {
			return missing
		}
		return noSchedule(n)
	}
	err = s.pauseInTemporal(ctx, n, paused, initiator)
	if notFound(err) {
		if _, err = s.describe(ctx, n); err == nil { // it is there again
			err = s.pauseInTemporal(ctx, n, paused, initiator)
		}
	}
	return err
}

func (s *Service) pauseInTemporal(
	ctx context.Context, n deployments.ScheduleName, paused bool, initiator string,
) error {
	if paused {
		return unknownSchedule(n, failure("pause the schedule", s.handle(ctx, n).Pause(ctx,
			client.SchedulePauseOptions{Note: pausedBy(initiator)})))
	}
	return unknownSchedule(n, failure("resume the schedule", s.handle(ctx, n).Unpause(ctx,
		client.ScheduleUnpauseOptions{Note: "resumed by " + initiator})))
}

// RunSchedule runs a schedule now.
func (s *Service) RunSchedule(ctx context.Context, n deployments.ScheduleName) error {
	d, err := s.describe(ctx, n)
	if err != nil {
		return err
	}
	for _, w := range d.Info.RunningWorkflows {
		if run := s.run(ctx, w.WorkflowID, w.FirstExecutionRunID); run.Ended.IsZero() {
			return deployments.Errorf(deployments.CodeConflict, "the schedule %s is running already; `deployctl "+
				"schedule runs %s` shows how it ends", n.Name, n.Name)
		}
	}
	ask := func(at time.Time) error {
		_, err := s.store.Jobs.ChangeSchedule(context.WithoutCancel(ctx), n, func(w *jobs.Schedule) error {
			w.RunRequested = at
			return nil
		})
		return err
	}
	if err := ask(time.Now()); err != nil && deployments.CodeOf(err) == deployments.CodeNotFound {
		return noSchedule(n)
	} else if err != nil {
		return err
	}
	// Buffered: the schedule may not know yet that a run has just ended.
	err = s.handle(ctx, n).Trigger(ctx, client.ScheduleTriggerOptions{
		Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE})
	if err != nil {
		_ = ask(time.Time{}) // otherwise it could be run for an hour
	}
	return unknownSchedule(n, failure("run the schedule", err))
}

// RemoveStack removes a stack and its schedules. A schedule that remains, because Temporal is unreachable or it was
// just created, removes itself at its next run.
func (s *Service) RemoveStack(ctx context.Context, name deployments.StackName, force bool) error {
	if err := s.store.RemoveStack(ctx, name, force); err != nil {
		return err
	}
	s.tellStack(ctx, name, deployments.EventStackDeleted)
	names, _ := s.scheduleNames(ctx, name)
	for _, n := range names {
		_ = s.RemoveSchedule(ctx, n)
	}
	return nil
}

// RenameStack renames a stack. Schedules name their stack, so it must have none.
func (s *Service) RenameStack(ctx context.Context, r deployments.RenameRequest) error {
	list, err := s.Schedules(ctx, r.From)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		return deployments.Errorf(deployments.CodeConflict,
			"%s has a schedule %s, which knows it by its name: remove it with `deployctl schedule rm %s`, rename the "+
				"stack, and create it again", r.From, list[0].Name.Name, list[0].Name.Name)
	}
	if err := s.store.Store.RenameStack(ctx, r.From, r.To); err != nil {
		return err
	}
	return s.recordRename(ctx, r)
}
