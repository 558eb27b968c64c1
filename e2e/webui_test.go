package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
)

// workflow is what Temporal's Web UI reads of a workflow.
type workflow struct {
	ExecutionConfig struct {
		UserMetadata struct{ Summary, Details payload }
	}
	WorkflowExecutionInfo struct {
		Type             struct{ Name string }
		Execution        struct{ WorkflowID, RunID string }
		Status           string
		SearchAttributes struct{ IndexedFields map[string]payload }
	}
	PendingActivities   []json.RawMessage
	PendingWorkflowTask struct{ Attempt int }
}

// payload is one of Temporal's, as JSON.
type payload struct {
	Metadata map[string][]byte `json:"metadata"`
	Data     []byte            `json:"data"`
}

// describe asks the Web UI's own API for a workflow.
func (h *home) describe(t *testing.T, id string) (w workflow) {
	t.Helper()
	s := h.status(t)
	res, err := http.Get(s.UIURL + "/api/v1/namespaces/" + s.Namespace + "/workflows/" + url.PathEscape(id))
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("the Web UI answers %s for %s", res.Status, id)
	}
	must(t, json.NewDecoder(res.Body).Decode(&w))
	return w
}

// historyLength is how many events a workflow has; 0 while there is none, or nobody who could tell.
func (h *home) historyLength(s status, id string) int {
	res, err := http.Get(s.UIURL + "/api/v1/namespaces/" + s.Namespace + "/workflows/" + url.PathEscape(id))
	if err != nil {
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	var w struct {
		WorkflowExecutionInfo struct {
			HistoryLength int `json:"historyLength,string"`
		}
	}
	if json.NewDecoder(res.Body).Decode(&w) != nil {
		return 0
	}
	return w.WorkflowExecutionInfo.HistoryLength
}

// history is a workflow's, as the types of its events.
func (h *home) history(t *testing.T, id string) (types []string) {
	t.Helper()
	types, err := h.readHistory(h.status(t), id)
	must(t, err)
	return types
}

// readHistory asks the Web UI's own API for the first page of a history.
func (h *home) readHistory(s status, id string) (types []string, err error) {
	res, err := http.Get(s.UIURL + "/api/v1/namespaces/" + s.Namespace + "/workflows/" + url.PathEscape(id) + "/history?maximumPageSize=1000")
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		History struct{ Events []struct{ EventType string } }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if len(answer.History.Events) == 0 || answer.History.Events[0].EventType != "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED" {
		return nil, fmt.Errorf("the history of %s is %v", id, answer.History.Events)
	}
	for _, event := range answer.History.Events {
		types = append(types, event.EventType)
	}
	return types, nil
}

// readableWorkflow makes an update and looks at it as the Web UI does.
func readableWorkflow(t *testing.T, p *project, message string) {
	got := p.update(t, "up", "--message", message)
	w := p.describe(t, "update/"+got.Update)
	attributes := map[string]string{}
	for name, value := range w.WorkflowExecutionInfo.SearchAttributes.IndexedFields {
		var text string
		if json.Unmarshal(value.Data, &text) == nil { // others than text are not ours
			attributes[name] = text
		}
	}
	for name, want := range map[string]string{
		"Org": "organization", "Project": "website", "Stack": "dev", "Kind": "up", "Result": "succeeded",
	} {
		if attributes[name] != want {
			t.Errorf("%s is %q", name, attributes[name])
		}
	}
	if attributes["Initiator"] == "" {
		t.Error("there is no Initiator")
	}
}
