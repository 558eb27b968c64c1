//go:build record

package workflows

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
)

// recordScheduled stores the histories of runs of schedules.
func recordScheduled(t *testing.T, server *devserver.Server) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := recordingClient(ctx, t, server)
	for name, remedy := range map[string]string{"scheduled": "succeeded", "scheduled-failure": "failed"} {
		o := newOffice()
		o.drifted, o.endings["7"] = 2, deployments.UpdateInfo{Status: remedy, Error: "quota exceeded"}
		var workers []worker.Worker
		for _, queue := range []string{deployments.SharedTaskQueue,
			deployments.ScheduledTaskQueue(deployments.SharedTaskQueue)} {
			w := worker.New(c, queue, worker.Options{})
			New(Settings{}).Register(w)
			w.RegisterActivity(o)
			if err := w.Start(); err != nil {
				t.Fatal(err)
			}
			workers = append(workers, w)
		}
		schedule := deployments.Schedule{
			Name: deployments.ScheduleName{StackName: theStack, Name: name}, Kind: deployments.ScheduleDrift,
			Remediate: true, Every: time.Hour,
		}
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: deployments.ScheduleID(schedule.Name), TaskQueue: deployments.SharedTaskQueue,
			TypedSearchAttributes: ScheduleAttributes(schedule),
		}, deployments.WorkflowScheduled, deployments.ScheduledInput{Schedule: schedule, StackID: "stack-id"})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Get(ctx, nil); (err == nil) != (remedy == "succeeded") {
			t.Errorf("%s ends with %v", name, err)
		}
		for _, w := range workers {
			w.Stop()
		}
		keep(t, c, name+".run", run.GetID(), run.GetRunID())
	}
}
