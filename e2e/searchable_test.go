package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// dial connects to the service's Temporal server.
func (h *home) dial(t *testing.T) client.Client {
	t.Helper()
	s := h.status(t)
	temporal, err := s.Dial()
	must(t, err)
	t.Cleanup(temporal.Close)
	return temporal
}

// TestAStepIsAnActivityWithItsNameAndAttempts reads a Run's history: one activity for each create, whose summary says
// what it does, and which counts its attempts.
func TestAStepIsAnActivityWithItsNameAndAttempts(t *testing.T) {
	t.Parallel()
	s := newStage(t, sharedHome(t))
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{
		Name: "busy", Do: fakecloud.Fail, Op: fakecloud.Create, Object: "named-1", Status: 503, RetryAfter: 1, Times: 2,
	}))
	got := s.update(t, "up")
	service, browser := s.status(t), s.browser(t)
	attempts, summaries := map[string]int32{}, map[int64]string{}
	history := s.dial(t).GetWorkflowHistory(t.Context(), "run/"+got.Update, "", false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		must(t, err)
		if summary := event.GetUserMetadata().GetSummary(); event.GetActivityTaskScheduledEventAttributes() != nil &&
			summary != nil {
			summaries[event.GetEventId()], _ = decoded(t, browser, service,
				payload{summary.GetMetadata(), summary.GetData()})
		}
		if started := event.GetActivityTaskStartedEventAttributes(); started != nil {
			name := summaries[started.GetScheduledEventId()]
			if attempts[name] > 0 {
				t.Errorf("%q is an activity twice", name)
			}
			attempts[name] = started.GetAttempt()
		}
	}
	for i := range 3 {
		for kind, name := range map[string]string{"Named": "named", "Auto": "auto", "Tagged": "tagged",
			"Server": "server"} {
			summary, want := fmt.Sprintf("create fake:index:%s %s-%d", kind, name, i+1), int32(1)
			if summary == "create fake:index:Named named-1" {
				want = 3
			}
			if attempts[summary] != want {
				t.Errorf("%q has %d attempts, not %d", summary, attempts[summary], want)
			}
		}
	}
}

// TestAnUpdateIsFoundByWhatItIs asks the server for the update by all of its search attributes.
func TestAnUpdateIsFoundByWhatItIs(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	got := s.update(t, "up")
	var initiator string
	attributes := s.describe(t, "update/"+got.Update).WorkflowExecutionInfo.SearchAttributes
	must(t, json.Unmarshal(attributes.IndexedFields["Initiator"].Data, &initiator))
	temporal := s.dial(t)
	find := func(result string) (ids []string) {
		found, err := temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf(
				"Org = 'organization' AND Project = '%s' AND Stack = 'dev' AND Kind = 'up' AND Result = '%s' AND "+
					"Initiator = '%s'",
				projectName(t), result, initiator)})
		must(t, err)
		for _, w := range found.GetExecutions() {
			ids = append(ids, w.GetExecution().GetWorkflowId())
		}
		return ids
	}
	eventually(t, "the update is found", func() bool {
		return slices.Contains(find("succeeded"),
			"update/"+got.Update)
	})
	if ids := find("failed"); len(ids) > 0 {
		t.Errorf("%v are found as failed", ids)
	}
}
