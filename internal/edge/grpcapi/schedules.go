package grpcapi

import (
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

type schedules struct {
	api.UnsafeSchedulesServer // a method without a handler does not compile
	service                   deployments.Schedules
}

// CreateSchedule gives what the schedule submits the authority of its caller.
func (s *schedules) CreateSchedule(
	ctx context.Context, m *api.CreateScheduleRequest,
) (*api.CreateScheduleResponse, error) {
	schedule := wire.ToSchedule(m.GetSchedule())
	schedule.Initiator, schedule.Authority = initiatorOf(ctx, schedule.Initiator), callerOf(ctx).Delegated()
	return &api.CreateScheduleResponse{}, s.service.CreateSchedule(ctx, schedule)
}

func (s *schedules) ListSchedules(
	ctx context.Context, m *api.ListSchedulesRequest,
) (*api.ListSchedulesResponse, error) {
	list, err := s.service.Schedules(ctx, wire.ToStack(m.GetStack()))
	return &api.ListSchedulesResponse{Schedules: wire.FromSchedules(list)}, err
}

func (s *schedules) GetSchedule(ctx context.Context, m *api.GetScheduleRequest) (*api.GetScheduleResponse, error) {
	schedule, err := s.service.Schedule(ctx, wire.ToScheduleName(m.GetName()))
	return &api.GetScheduleResponse{Schedule: wire.FromSchedule(schedule)}, err
}

func (s *schedules) RemoveSchedule(
	ctx context.Context, m *api.RemoveScheduleRequest,
) (*api.RemoveScheduleResponse, error) {
	return &api.RemoveScheduleResponse{}, s.service.RemoveSchedule(ctx, wire.ToScheduleName(m.GetName()))
}

func (s *schedules) PauseSchedule(
	ctx context.Context, m *api.PauseScheduleRequest,
) (*api.PauseScheduleResponse, error) {
	initiator := initiatorOf(ctx, m.GetInitiator())
	return &api.PauseScheduleResponse{}, s.service.PauseSchedule(ctx, wire.ToScheduleName(m.GetName()), m.GetPaused(),
		initiator)
}

func (s *schedules) RunSchedule(ctx context.Context, m *api.RunScheduleRequest) (*api.RunScheduleResponse, error) {
	return &api.RunScheduleResponse{}, s.service.RunSchedule(ctx, wire.ToScheduleName(m.GetName()))
}

func (s *schedules) ScheduleRuns(ctx context.Context, m *api.ScheduleRunsRequest) (*api.ScheduleRunsResponse, error) {
	list, err := s.service.ScheduleRuns(ctx, wire.ToScheduleName(m.GetName()), int(m.GetLimit()))
	return &api.ScheduleRunsResponse{Runs: wire.FromRuns(list)}, err
}

func (s *schedules) GetDrift(ctx context.Context, m *api.GetDriftRequest) (*api.GetDriftResponse, error) {
	drift, err := s.service.Drift(ctx, wire.ToStack(m.GetStack()))
	return &api.GetDriftResponse{Drift: wire.FromDrift(drift)}, err
}
