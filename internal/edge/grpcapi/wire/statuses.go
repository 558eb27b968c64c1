package wire

import (
	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
)

// FromStatusQuery writes which stacks are wanted.
func FromStatusQuery(q deployments.StatusQuery) *api.ListStatusesRequest {
	return &api.ListStatusesRequest{Organization: q.Organization, Project: q.Project, After: q.After,
		Limit: int32(q.Limit)}
}

// ToStatusQuery reads which stacks are wanted.
func ToStatusQuery(m *api.ListStatusesRequest) deployments.StatusQuery {
	return deployments.StatusQuery{Organization: m.GetOrganization(), Project: m.GetProject(), After: m.GetAfter(),
		Limit: int(m.GetLimit())}
}

// FromStatusPage writes a page of stacks.
func FromStatusPage(p deployments.StatusPage) *api.ListStatusesResponse {
	return &api.ListStatusesResponse{Stacks: each(p.Stacks, fromStatus), Next: p.Next, Incomplete: p.Incomplete}
}

// ToStatusPage reads a page of stacks.
func ToStatusPage(m *api.ListStatusesResponse) deployments.StatusPage {
	return deployments.StatusPage{Stacks: each(m.GetStacks(), toStatus), Next: m.GetNext(),
		Incomplete: m.GetIncomplete()}
}

func fromStatus(s deployments.StackStatus) *api.StackStatus {
	m := &api.StackStatus{Stack: FromStackInfo(s.StackInfo), Last: fromInfoPointer(s.Last),
		Schedules: each(s.Schedules, func(sched deployments.ScheduleStatus) *api.ScheduleStatus {
			return &api.ScheduleStatus{Name: sched.Name, Paused: sched.Paused, Note: sched.Note,
				Next: fromTime(sched.Next)}
		})}
	if d := s.Drift; d != nil {
		m.Drift = &api.DriftStatus{At: fromTime(d.At), Resources: int64(d.Resources), Remediated: d.Remediated}
	}
	return m
}

func toStatus(m *api.StackStatus) deployments.StackStatus {
	s := deployments.StackStatus{StackInfo: ToStackInfo(m.GetStack()), Last: toInfoPointer(m.GetLast()),
		Schedules: each(m.GetSchedules(), func(sched *api.ScheduleStatus) deployments.ScheduleStatus {
			return deployments.ScheduleStatus{Name: sched.GetName(), Paused: sched.GetPaused(), Note: sched.GetNote(),
				Next: toTime(sched.GetNext())}
		})}
	if d := m.GetDrift(); d != nil {
		s.Drift = &deployments.DriftStatus{At: toTime(d.GetAt()), Resources: int(d.GetResources()),
			Remediated: d.GetRemediated()}
	}
	return s
}
