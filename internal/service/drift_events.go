package service

import (
	"context"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// Drift returns the result of the last drift check; CodeNotFound when there was none.
func (s *Service) Drift(ctx context.Context, name deployments.StackName) (deployments.Drift, error) {
	return s.Jobs.Drift(ctx, name)
}

// TellDrift tells webhooks what a drift check has found, or that a remediation has ended. Told twice, it is sent once.
func (s *Service) TellDrift(ctx context.Context, d deployments.Drift, ended deployments.UpdateInfo) error {
	for _, e := range deployments.EventsOfDrift(d, ended) {
		if err := s.Notify(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// RunFailed pauses a schedule one of whose updates has not succeeded, and tells webhooks if that was a drift check or a
// remediation. A workflow that is no run of a schedule, such as a deployment, has nothing to pause.
func (s *Service) RunFailed(ctx context.Context, run workflow.Execution, ended deployments.UpdateInfo) error {
	n, _, err := deployments.ScheduleOfRun(run.ID)
	if err != nil {
		return nil //nolint:nilerr // it is no run of a schedule
	}
	w, err := s.store.Jobs.Schedule(ctx, n)
	if err == nil && w.Schedule.Kind == deployments.ScheduleDrift {
		err = s.TellDrift(ctx, deployments.Drift{Update: ended.Update, At: ended.Ended}, ended)
	}
	if err != nil && !notFound(err) {
		return err
	}
	return s.ScheduleFailed(ctx, run)
}
