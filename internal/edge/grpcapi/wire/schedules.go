package wire

import (
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"google.golang.org/protobuf/types/known/durationpb"
)

// FromScheduleName writes a schedule's name.
func FromScheduleName(n deployments.ScheduleName) *api.ScheduleName {
	return &api.ScheduleName{Stack: FromStack(n.StackName), Name: n.Name}
}

// ToScheduleName reads a schedule's name.
func ToScheduleName(m *api.ScheduleName) deployments.ScheduleName {
	return deployments.ScheduleName{StackName: ToStack(m.GetStack()), Name: m.GetName()}
}

// FromSchedule writes a schedule.
func FromSchedule(s deployments.Schedule) *api.Schedule {
	m := &api.Schedule{
		Name: FromScheduleName(s.Name), Kind: string(s.Kind), Cron: s.Cron, At: fromTime(s.At), Remediate: s.Remediate,
		Initiator: s.Initiator, Paused: s.Paused, Note: s.Note, Created: fromTime(s.Created), Next: fromTime(s.Next),
		Targets: s.Options.Targets, TargetDependents: s.Options.TargetDependents, Excludes: s.Options.Excludes,
		ExcludeDependents: s.Options.ExcludeDependents, ExcludeProtected: s.Options.ExcludeProtected,
		RunProgram: s.Options.RunProgram, ContinueOnError: s.Options.ContinueOnError, RemoveStack: s.RemoveStack,
	}
	if s.Every != 0 {
		m.Every = durationpb.New(s.Every)
	}
	if s.Last != nil {
		m.Last = fromRun(*s.Last)
	}
	return m
}

// ToSchedule reads a schedule.
func ToSchedule(m *api.Schedule) deployments.Schedule {
	s := deployments.Schedule{
		Name: ToScheduleName(m.GetName()), Kind: deployments.ScheduleKind(m.GetKind()), Every: toDuration(m.GetEvery()),
		Cron: m.GetCron(),
		At:   toTime(m.GetAt()), Remediate: m.GetRemediate(), Initiator: m.GetInitiator(), Paused: m.GetPaused(),
		Note:    m.GetNote(),
		Created: toTime(m.GetCreated()), Next: toTime(m.GetNext()), RemoveStack: m.GetRemoveStack(),
		Options: deployments.ScheduleOptions{
			Targets: m.GetTargets(), TargetDependents: m.GetTargetDependents(), Excludes: m.GetExcludes(),
			ExcludeDependents: m.GetExcludeDependents(), ExcludeProtected: m.GetExcludeProtected(),
			RunProgram: m.GetRunProgram(), ContinueOnError: m.GetContinueOnError(),
		},
	}
	if m.GetLast() != nil {
		last := toRun(m.GetLast())
		s.Last = &last
	}
	return s
}

func toDuration(m *durationpb.Duration) time.Duration {
	if m == nil {
		return 0
	}
	return m.AsDuration()
}

func fromRun(r deployments.ScheduleRun) *api.ScheduleRun {
	return &api.ScheduleRun{
		Id: r.ID, Started: fromTime(r.Started), Ended: fromTime(r.Ended), Status: r.Status, Error: r.Error,
		Updates: each(r.Updates, FromUpdate), Drifted: int64(r.Drifted),
	}
}

func toRun(m *api.ScheduleRun) deployments.ScheduleRun {
	return deployments.ScheduleRun{
		ID: m.GetId(), Started: toTime(m.GetStarted()), Ended: toTime(m.GetEnded()), Status: m.GetStatus(),
		Error:   m.GetError(),
		Updates: each(m.GetUpdates(), ToUpdate), Drifted: int(m.GetDrifted()),
	}
}

// FromSchedules and the functions after it translate lists.
func FromSchedules(list []deployments.Schedule) []*api.Schedule { return each(list, FromSchedule) }

// ToSchedules reads a list of schedules.
func ToSchedules(list []*api.Schedule) []deployments.Schedule { return each(list, ToSchedule) }

// FromRuns writes a list of runs.
func FromRuns(list []deployments.ScheduleRun) []*api.ScheduleRun { return each(list, fromRun) }

// ToRuns reads a list of runs.
func ToRuns(list []*api.ScheduleRun) []deployments.ScheduleRun { return each(list, toRun) }

// FromDrift writes what a look for drift has found.
func FromDrift(d deployments.Drift) *api.Drift {
	m := &api.Drift{
		Update: FromUpdate(d.Update), At: fromTime(d.At),
		Resources: each(d.Resources, func(r deployments.DriftedResource) *api.DriftedResource {
			return &api.DriftedResource{
				Urn: r.URN, Gone: r.Gone,
				Properties: each(r.Properties, func(p deployments.DriftedProperty) *api.DriftedProperty {
					return &api.DriftedProperty{Path: p.Path, Expected: cutText(p.Expected, maxSentence),
						Actual: cutText(p.Actual, maxSentence)}
				}),
			}
		}),
	}
	if d.Remediation != nil {
		m.Remedy = FromUpdate(*d.Remediation)
	}
	return m
}

// ToDrift reads what a look for drift has found.
func ToDrift(m *api.Drift) deployments.Drift {
	d := deployments.Drift{
		Update: ToUpdate(m.GetUpdate()), At: toTime(m.GetAt()),
		Resources: each(m.GetResources(), func(r *api.DriftedResource) deployments.DriftedResource {
			return deployments.DriftedResource{
				URN: r.GetUrn(), Gone: r.GetGone(),
				Properties: each(r.GetProperties(), func(p *api.DriftedProperty) deployments.DriftedProperty {
					return deployments.DriftedProperty{Path: p.GetPath(), Expected: p.GetExpected(),
						Actual: p.GetActual()}
				}),
			}
		}),
	}
	if m.GetRemedy() != nil {
		remediation := ToUpdate(m.GetRemedy())
		d.Remediation = &remediation
	}
	return d
}
