package pulumiapi

import (
	"net/http"
	"slices"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// driftRoutes are about the drift checks of a stack's schedules.
func driftRoutes() []route {
	return []route{
		{method: http.MethodGet, path: stackPath + "/drift/status", calls: calls("GetDriftStatus"),
			like: api.Schedules_GetDrift_FullMethodName, handle: driftStatus},
		{method: http.MethodGet, path: stackPath + "/drift/runs", calls: calls("ListDriftRuns"),
			like: api.Schedules_ScheduleRuns_FullMethodName, handle: driftRuns},
	}
}

// driftStatus says what the last drift check has found, if there was one. What was remediated is no drift any more.
func driftStatus(c *call) (any, error) {
	answer := apitype.StackDriftStatus{}
	drift, err := c.edge.Service.Drift(c.Context(), c.stack)
	switch {
	case err == nil:
		answer.DriftDetected = len(drift.Resources) > 0 && drift.Remediation == nil
		answer.LatestDriftRun = drift.Update.Version
	case !notFound(err):
		return nil, err
	}
	checks, err := c.driftChecks()
	answer.RunInProgress = slices.ContainsFunc(checks, func(s deployments.Schedule) bool {
		return s.Last != nil && s.Last.Ended.IsZero() && s.Last.Status == deployments.StatusRunning
	})
	return answer, err
}

// driftChecks returns the schedules of the stack that check for drift.
func (c *call) driftChecks() ([]deployments.Schedule, error) {
	list, err := c.edge.Service.Schedules(c.Context(), c.stack)
	return slices.DeleteFunc(list, func(s deployments.Schedule) bool { return s.Kind != deployments.ScheduleDrift }), err
}

// mostDriftRuns is how many runs of a schedule are listed.
const mostDriftRuns = 100

// driftRuns lists the runs of the stack's drift checks, the latest first, as far as Temporal still has them.
func driftRuns(c *call) (any, error) {
	page, err := c.asked(1, mostDriftRuns)
	if err != nil {
		return nil, err
	}
	checks, err := c.driftChecks()
	if err != nil {
		return nil, err
	}
	var runs []deployments.ScheduleRun
	for _, s := range checks {
		of, err := c.edge.Service.ScheduleRuns(c.Context(), s.Name, mostDriftRuns)
		if err != nil {
			return nil, err
		}
		runs = append(runs, of...)
	}
	slices.SortStableFunc(runs, func(a, b deployments.ScheduleRun) int { return b.Started.Compare(a.Started) })
	answer := apitype.ListDriftRunsResponse{DriftRuns: []apitype.DriftRun{}, ItemsPerPage: page.Size, Total: len(runs)}
	from, to := page.Bounds(len(runs))
	for _, run := range runs[from:to] {
		one, err := c.driftRun(run)
		if err != nil {
			return nil, err
		}
		answer.DriftRuns = append(answer.DriftRuns, one)
	}
	return answer, nil
}

// driftRun describes a run of a drift schedule: its first update is the check, the second one the remediation.
func (c *call) driftRun(run deployments.ScheduleRun) (apitype.DriftRun, error) {
	answer := apitype.DriftRun{ID: run.ID, DriftDetected: run.Drifted > 0, Created: stamp(run.Started),
		Status: run.Status}
	var phases []*apitype.DriftRunUpdate
	for _, u := range run.Updates {
		u.StackName = c.stack
		info, err := c.edge.Service.Info(c.Context(), u)
		if err != nil && !notFound(err) {
			return answer, err
		}
		phases = append(phases, &apitype.DriftRunUpdate{UpdateID: u.Version, ResourceChanges: info.Changes,
			Modified: stamp(info.Ended), Status: info.Status})
	}
	if len(phases) > 0 {
		answer.ID, answer.DetectUpdate = phases[0].UpdateID, phases[0]
	}
	if len(phases) > 1 {
		answer.RemediateUpdate = phases[1]
	}
	return answer, nil
}
