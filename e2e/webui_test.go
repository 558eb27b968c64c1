package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
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
	PendingActivities   []pendingActivity
	PendingWorkflowTask struct{ Attempt int }
}

// payload is one of Temporal's, as JSON.
type payload struct {
	Metadata map[string][]byte `json:"metadata"`
	Data     []byte            `json:"data"`
}

type pendingActivity struct {
	ActivityType            struct{ Name string }
	State                   string
	Attempt                 int
	NextAttemptScheduleTime string
	LastFailure             struct{ EncodedAttributes payload }
}

// uiClient is the browser of a home's user, once it has opened a link to the Web UI.
type uiClient struct {
	mu      sync.Mutex
	browser *http.Client
	at      string // the Web UI's address then
}

// webUI gets a path of the Web UI's own API.
func (h *home) webUI(s status, path string) (*http.Response, error) {
	h.ui.mu.Lock()
	defer h.ui.mu.Unlock()
	if h.ui.browser == nil || h.ui.at != s.UIURL { // each start has its own address, and its own sessions
		browser, err := h.openUI(s)
		if err != nil {
			return nil, err
		}
		h.ui.browser, h.ui.at = browser, s.UIURL
	}
	return h.ui.browser.Get(s.UIURL + path)
}

// openUI opens a fresh link to the Web UI in a new browser.
func (h *home) openUI(s status) (*http.Client, error) {
	cmd := exec.Command(binary, "dev", "status")
	cmd.Env = h.env
	said, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	browser := porttest.Browser(jar)
	res, err := browser.Get(uiLink.FindString(string(said)))
	if err != nil {
		return nil, err
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the link to the Web UI of %s answers %s", s.Home, res.Status)
	}
	return browser, nil
}

var uiLink = regexp.MustCompile(`http://\S+/open\?link=\S+`)

// describe asks the Web UI's own API for a workflow.
func (h *home) describe(t *testing.T, id string) (w workflow) {
	t.Helper()
	s := h.status(t)
	res, err := h.webUI(s, "/api/v1/namespaces/"+s.Namespace+"/workflows/"+url.PathEscape(id))
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
	res, err := h.webUI(s, "/api/v1/namespaces/"+s.Namespace+"/workflows/"+url.PathEscape(id))
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

// event is one of a workflow's history.
type event struct {
	EventType                         string
	EventTime                         time.Time
	ActivityTaskFailedEventAttributes struct {
		Failure struct{ ApplicationFailureInfo struct{ Type string } }
	}
	ActivityTaskTimedOutEventAttributes struct {
		Failure struct{ TimeoutFailureInfo struct{ TimeoutType string } }
	}
}

// history is a workflow's, at most a thousand events of it, as the Web UI's own API gives it.
func (h *home) history(s status, id string) ([]event, error) {
	res, err := h.webUI(s, "/api/v1/namespaces/"+s.Namespace+"/workflows/"+url.PathEscape(
		id)+"/history?maximumPageSize=1000")
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		History struct{ Events []event }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return nil, err
	}
	events := answer.History.Events
	if len(events) == 0 || events[0].EventType != "EVENT_TYPE_WORKFLOW_EXECUTION_STARTED" {
		return nil, fmt.Errorf("the history of %s is %v", id, events)
	}
	return events, nil
}

// readableWorkflow makes an update and looks at it as the Web UI does. Its user may hear of its end a moment before its
// workflow has ended.
func readableWorkflow(t *testing.T, p *project, message string) {
	got := p.update(t, "up", "--message", message)
	attributes := map[string]string{}
	eventually(t, "the workflow has a result", func() bool {
		for name, value := range p.describe(t,
			"update/"+got.Update).WorkflowExecutionInfo.SearchAttributes.IndexedFields {
			var text string
			if json.Unmarshal(value.Data, &text) == nil { // others than text are not ours
				attributes[name] = text
			}
		}
		return attributes["Result"] != ""
	})
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
