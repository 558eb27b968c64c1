//go:build unix

package attack

import (
	"context"
	"strings"
	"sync"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/e2e/harness"
)

// overtake completes an activity of a workflow, in the server's eyes, as soon as a worker has begun it.
func (f *field) overtake(
	t *testing.T, c client.Client, workflow, id string, result *commonpb.Payloads,
) (stop func() (won bool)) {
	t.Helper()
	ctx, cancel := context.WithCancel(patient(t))
	won := false
	var trying sync.WaitGroup
	trying.Go(func() {
		for ctx.Err() == nil && !won {
			_, err := c.WorkflowService().RespondActivityTaskCompletedById(ctx,
				&workflowservice.RespondActivityTaskCompletedByIdRequest{Namespace: namespace, WorkflowId: workflow,
					ActivityId: id, Result: result, Identity: "intruder"})
			won = err == nil
		}
	})
	return func() bool {
		cancel()
		trying.Wait()
		return won
	}
}

// absentResults has the activities by which an update begins complete with no value at all, which needs no key. The
// stack keeps its state, and nothing is made again.
func absentResults(t *testing.T, f *field) {
	c := f.temporal(t)
	for kind, workflow := range map[string]string{"ReadHeaders": "run", "ClaimStack": "update"} {
		for name, nothing := range map[string]*commonpb.Payloads{"nil": nil, "empty": {}} {
			project := strings.ToLower("absent-" + kind + "-" + name)
			tool := f.project(t, project, two, "FAKECLOUD_ENDPOINT="+f.cloud.URL())
			tool.Update(t, "up")
			workflow := workflow + "/organization/" + project + "/dev/"
			tool.Update(t, "up")
			id := scheduled(t, history(t, c, workflow+"2"), kind, "").GetActivityId()
			stop := f.overtake(t, c, workflow+"3", id, nothing)
			end := tool.Run(t, "up", "--yes", "--skip-preview")
			if stop() && end.Code == 0 {
				t.Errorf("%s: the update goes on with nothing: %s", project, end.Said())
			}
			tool.Expect(t, harness.Changes{"same": 3}, "up")
			if made := f.removeAll(t, project); len(made) != 2 {
				t.Errorf("%s: made are %v", project, made)
			}
		}
	}
}
