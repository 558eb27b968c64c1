package client

import (
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// CreateSchedule creates a schedule.
func (c *Client) CreateSchedule(ctx context.Context, s deployments.Schedule) error {
	_, err := once(ctx, c, c.schedules.CreateSchedule, &api.CreateScheduleRequest{Schedule: wire.FromSchedule(s)})
	return err
}

// Schedules lists the schedules of a stack by name.
func (c *Client) Schedules(ctx context.Context, s deployments.StackName) ([]deployments.Schedule, error) {
	m, err := repeat(ctx, c, c.schedules.ListSchedules, &api.ListSchedulesRequest{Stack: wire.FromStack(s)})
	return wire.ToSchedules(m.GetSchedules()), err
}

// Schedule describes a schedule.
func (c *Client) Schedule(ctx context.Context, n deployments.ScheduleName) (deployments.Schedule, error) {
	m, err := repeat(ctx, c, c.schedules.GetSchedule, &api.GetScheduleRequest{Name: wire.FromScheduleName(n)})
	return wire.ToSchedule(m.GetSchedule()), err
}

// RemoveSchedule removes a schedule.
func (c *Client) RemoveSchedule(ctx context.Context, n deployments.ScheduleName) error {
	_, err := once(ctx, c, c.schedules.RemoveSchedule, &api.RemoveScheduleRequest{Name: wire.FromScheduleName(n)})
	return err
}

// PauseSchedule pauses or resumes a schedule.
func (c *Client) PauseSchedule(ctx context.Context, n deployments.ScheduleName, paused bool, initiator string) error {
	_, err := repeat(ctx, c, c.schedules.PauseSchedule, &api.PauseScheduleRequest{Name: wire.FromScheduleName(n),
		Paused: paused, Initiator: initiator})
	return err
}

// RunSchedule runs a schedule now.
func (c *Client) RunSchedule(ctx context.Context, n deployments.ScheduleName) error {
	_, err := once(ctx, c, c.schedules.RunSchedule, &api.RunScheduleRequest{Name: wire.FromScheduleName(n)})
	return err
}

// ScheduleRuns lists the runs of a schedule, latest first.
func (c *Client) ScheduleRuns(
	ctx context.Context, n deployments.ScheduleName, limit int,
) ([]deployments.ScheduleRun, error) {
	m, err := repeat(ctx, c, c.schedules.ScheduleRuns, &api.ScheduleRunsRequest{Name: wire.FromScheduleName(n),
		Limit: int32(limit)})
	return wire.ToRuns(m.GetRuns()), err
}

// Drift returns the result of the last drift check.
func (c *Client) Drift(ctx context.Context, s deployments.StackName) (deployments.Drift, error) {
	m, err := repeat(ctx, c, c.schedules.GetDrift, &api.GetDriftRequest{Stack: wire.FromStack(s)})
	return wire.ToDrift(m.GetDrift()), err
}
