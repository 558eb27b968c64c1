package memory

import (
	"context"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// Statuses describes a page of stacks; without a caller, for the local user.
func (s *Service) Statuses(
	ctx context.Context, c deployments.Caller, q deployments.StatusQuery,
) (page deployments.StatusPage, err error) {
	size := q.Limit
	if size == 0 {
		size = deployments.MostStatuses
	}
	list, err := s.ListStacks(ctx, q.Organization, q.Project)
	for _, info := range list {
		name := info.Stack
		if c.Token != "" && !c.May(deployments.RoleViewer, name) || strings.Compare(name.String(), q.After) <= 0 {
			continue
		}
		if len(page.Stacks) == size {
			page.Next = page.Stacks[size-1].Stack.String()
			break
		}
		st, err := s.status(ctx, info)
		if err != nil {
			return page, err
		}
		page.Stacks = append(page.Stacks, st)
	}
	return page, err
}

func (s *Service) status(ctx context.Context, info deployments.StackInfo) (deployments.StackStatus, error) {
	st := deployments.StackStatus{StackInfo: info}
	history, err := s.History(ctx, info.Stack, 2)
	if err != nil {
		return st, err
	}
	for _, u := range history {
		if !u.Ended.IsZero() {
			st.Last = &u
			break
		}
	}
	schedules, err := s.Schedules(ctx, info.Stack)
	for _, sched := range schedules {
		st.Schedules = append(st.Schedules, deployments.ScheduleStatus{Name: sched.Name.Name, Paused: sched.Paused,
			Note: sched.Note, Next: sched.Next})
	}
	if d, err := s.Drift(ctx, info.Stack); err == nil {
		st.Drift = &deployments.DriftStatus{At: d.At, Resources: len(d.Resources), Remediated: d.Remediation != nil}
	}
	return st, err
}
