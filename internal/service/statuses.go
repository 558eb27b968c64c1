package service

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

// statusesAtOnce is how many stacks of a page are read at a time.
const statusesAtOnce = 16

// Statuses describes a page of stacks. Everything but schedules and waits is in the bucket.
func (s *Service) Statuses(
	ctx context.Context, c deployments.Caller, q deployments.StatusQuery,
) (deployments.StatusPage, error) {
	if err := q.Validate(); err != nil {
		return deployments.StatusPage{}, err
	}
	if within := c.Within(); q.Organization == "" && within != deployments.AnyOrganization {
		q.Organization = within
	}
	names, next, err := s.statusNames(ctx, c, q)
	if err != nil {
		return deployments.StatusPage{}, err
	}
	page := deployments.StatusPage{Next: next}
	schedules, err := s.scheduleStatuses(ctx, q.Organization, names)
	if err != nil {
		page.Incomplete = "schedules, and what waits for a person, are not known: " + err.Error()
	}
	page.Stacks = make([]deployments.StackStatus, len(names))
	reading, ctx := panics.NewGroup(ctx, "listing stacks")
	reading.SetLimit(statusesAtOnce)
	for i, name := range names {
		reading.Go(func() error {
			st, err := s.store.Status(ctx, name)
			if err != nil && deployments.CodeOf(err) == deployments.CodeNotFound {
				return nil // removed meanwhile
			}
			st.Schedules = schedules[name]
			if st.Active != nil && page.Incomplete == "" {
				s.detail(ctx, st.Active)
			}
			if err == nil && page.Incomplete == "" {
				err = s.addLost(ctx, &st)
			}
			page.Stacks[i] = st
			return err
		})
	}
	err = reading.Wait()
	page.Stacks = slices.DeleteFunc(page.Stacks, func(st deployments.StackStatus) bool { return st.Stack.Stack == "" })
	return page, err
}

// addLost adds the schedules of a stack that Temporal has lost; those that can run are made again.
func (s *Service) addLost(ctx context.Context, st *deployments.StackStatus) error {
	wanted, err := s.store.Jobs.ScheduleNames(ctx, st.Stack)
	if err != nil {
		return err
	}
	for _, n := range wanted {
		if slices.ContainsFunc(st.Schedules, func(known deployments.ScheduleStatus) bool { return known.Name == n.Name }) {
			continue
		}
		sched, err := s.listedSchedule(ctx, n)
		if err != nil {
			return err
		}
		if sched != nil {
			st.Schedules = append(st.Schedules, deployments.ScheduleStatus{Name: n.Name, Paused: sched.Paused,
				Next: sched.Next, Note: sched.Note})
		}
	}
	return nil
}

// statusNames returns the names of a page's stacks, all of which the caller may see, and where the next page begins.
func (s *Service) statusNames(
	ctx context.Context, c deployments.Caller, q deployments.StatusQuery,
) (names []deployments.StackName, next string, err error) {
	names, err = s.store.Organizations.StackNames(ctx, q.Organization, q.Project)
	may := c.Stacks(deployments.RoleViewer)
	names = slices.DeleteFunc(names, func(n deployments.StackName) bool { return !may(n) })
	begin, found := slices.BinarySearchFunc(names, q.After, func(n deployments.StackName, after string) int {
		return strings.Compare(n.String(), after)
	})
	if found {
		begin++
	}
	names = names[begin:]
	size := q.Limit
	if size == 0 {
		size = deployments.MostStatuses
	}
	if len(names) > size {
		names = names[:size]
		next = names[size-1].String()
	}
	return names, next, err
}

// scheduleStatuses returns what Temporal knows of the schedules of stacks, with one list for all.
func (s *Service) scheduleStatuses(
	ctx context.Context, organization string, names []deployments.StackName,
) (map[deployments.StackName][]deployments.ScheduleStatus, error) {
	if len(names) == 0 {
		return nil, nil
	}
	if away := s.Away(); away != nil {
		return nil, away
	}
	wanted := make(map[string]deployments.StackName, len(names))
	for _, name := range names {
		wanted[deployments.ScheduleID(deployments.ScheduleName{StackName: name})] = name
	}
	var query string
	if organization != "" {
		query = fmt.Sprintf("%s = '%s'", deployments.AttributeOrg, organization)
	}
	found, err := s.temporal.ScheduleClient().List(ctx, client.ScheduleListOptions{Query: query})
	if err != nil {
		return nil, failure("list the schedules", err)
	}
	list := map[deployments.StackName][]deployments.ScheduleStatus{}
	for found.HasNext() {
		entry, err := found.Next()
		if err != nil {
			return nil, failure("list the schedules", err)
		}
		at := strings.LastIndexByte(entry.ID, '/') + 1
		name, ours := wanted[entry.ID[:at]]
		if !ours {
			continue
		}
		st := deployments.ScheduleStatus{Name: entry.ID[at:], Paused: entry.Paused}
		if st.Paused {
			st.Note = noteOf(deployments.ScheduleName{StackName: name, Name: st.Name}, entry.Note, nil)
		} else if len(entry.NextActionTimes) > 0 {
			st.Next = entry.NextActionTimes[0]
		}
		list[name] = append(list[name], st)
	}
	for _, of := range list {
		slices.SortFunc(of, func(a, b deployments.ScheduleStatus) int { return strings.Compare(a.Name, b.Name) })
	}
	return list, nil
}
