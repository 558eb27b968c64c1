package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// CreateSchedule keeps a schedule; it never runs by itself.
func (s *Service) CreateSchedule(_ context.Context, sched deployments.Schedule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.find(sched.Name.StackName); err != nil {
		return err
	}
	if _, ok := s.schedules[sched.Name]; ok {
		return deployments.Errorf(deployments.CodeExists, "there is a schedule %s already", sched.Name)
	}
	sched.Created = begun
	s.schedules[sched.Name] = &sched
	return nil
}

// Schedules lists the schedules of a stack by name.
func (s *Service) Schedules(_ context.Context, name deployments.StackName) ([]deployments.Schedule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []deployments.Schedule
	for n, sched := range s.schedules {
		if n.StackName == name {
			list = append(list, *sched)
		}
	}
	slices.SortFunc(list, func(a, b deployments.Schedule) int { return strings.Compare(a.Name.Name, b.Name.Name) })
	return list, nil
}

// Schedule gives a schedule.
func (s *Service) Schedule(_ context.Context, n deployments.ScheduleName) (deployments.Schedule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sched, err := s.schedule(n)
	if err != nil {
		return deployments.Schedule{}, err
	}
	return *sched, nil
}

func (s *Service) schedule(n deployments.ScheduleName) (*deployments.Schedule, error) {
	sched, ok := s.schedules[n]
	if !ok {
		return nil, deployments.Errorf(deployments.CodeNotFound, "there is no schedule %s", n)
	}
	return sched, nil
}

// RemoveSchedule removes a schedule.
func (s *Service) RemoveSchedule(_ context.Context, n deployments.ScheduleName) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.schedule(n)
	delete(s.schedules, n)
	return err
}

// PauseSchedule pauses or resumes a schedule.
func (s *Service) PauseSchedule(_ context.Context, n deployments.ScheduleName, paused bool, initiator string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sched, err := s.schedule(n)
	if err != nil {
		return err
	}
	sched.Paused, sched.Note = paused, ""
	if paused {
		sched.Note = "paused by " + initiator
	}
	return nil
}

// RunSchedule notes a run that has found nothing.
func (s *Service) RunSchedule(_ context.Context, n deployments.ScheduleName) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sched, err := s.schedule(n)
	if err != nil {
		return err
	}
	sched.Last = &deployments.ScheduleRun{ID: "run", Started: begun, Ended: begun, Status: deployments.StatusSucceeded}
	return nil
}

// ScheduleRuns gives the last run.
func (s *Service) ScheduleRuns(
	_ context.Context, n deployments.ScheduleName, _ int,
) ([]deployments.ScheduleRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sched, err := s.schedule(n)
	if err != nil || sched.Last == nil {
		return nil, err
	}
	return []deployments.ScheduleRun{*sched.Last}, nil
}

// Drift gives what was put into Drifted.
func (s *Service) Drift(_ context.Context, name deployments.StackName) (deployments.Drift, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.Drifted[name]
	if !ok {
		return d, deployments.Errorf(deployments.CodeNotFound, "%s has not been checked for drift yet", name)
	}
	return d, nil
}
