package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// uiLink is a fresh link to the Web UI.
func (p *project) uiLink(t *testing.T) string {
	t.Helper()
	link := uiLink.FindString(p.must(t, "dev", "status"))
	if link == "" {
		t.Fatal("dev status prints no link")
	}
	return link
}

// newBrowser keeps cookies and follows nothing.
func newBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	b := porttest.Browser(jar)
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return b
}

// browser is one that has opened a link.
func (p *project) browser(t *testing.T) *http.Client {
	t.Helper()
	b := newBrowser(t)
	res, err := b.Get(p.uiLink(t))
	must(t, err)
	must(t, res.Body.Close())
	return b
}

// decoded asks the codec endpoint, as the Web UI does in the browser, for the text of a payload.
func decoded(t *testing.T, browser *http.Client, s status, sealed payload) (text string, code int) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"payloads": []payload{sealed}})
	must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.UIURL+"/codec/decode",
		bytes.NewReader(body))
	must(t, err)
	request.Header.Set("Origin", s.UIURL)
	res, err := browser.Do(request)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	var answer struct{ Payloads []payload }
	if res.StatusCode == http.StatusOK {
		must(t, json.NewDecoder(res.Body).Decode(&answer))
		if json.Unmarshal(answer.Payloads[0].Data, &text) != nil {
			text = string(answer.Payloads[0].Data)
		}
	}
	return text, res.StatusCode
}

func TestTheWebUIOpensSummariesForWhomHasTheLink(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	got := s.update(t, "up", "--message", "a | message")
	service, w := s.status(t), s.describe(t, "update/"+got.Update)
	browser := newBrowser(t)
	open := func(link string) int {
		res, err := browser.Get(link)
		must(t, err)
		must(t, res.Body.Close())
		return res.StatusCode
	}
	summary := w.ExecutionConfig.UserMetadata.Summary
	if _, code := decoded(t, browser, service, summary); code != http.StatusUnauthorized {
		t.Errorf("a browser without the link gets %d", code)
	}
	link := s.uiLink(t)
	if code := open(link); code != http.StatusOK {
		t.Errorf("the link answers %d", code)
	}
	if code := open(link); code != http.StatusForbidden {
		t.Errorf("used again, it answers %d", code)
	}
	if text, _ := decoded(t, browser, service, summary); text != "up "+projectName(t)+"/dev, version 1: a | message" {
		t.Errorf("the summary is %q", text)
	}
	if text, _ := decoded(t, browser, service, s.firstInput(t, "update/"+got.Update)); text != "[sealed]" {
		t.Errorf("the input is shown: %q", text)
	}
}

// firstInput is the input that a workflow was started with.
func (h *home) firstInput(t *testing.T, id string) payload {
	t.Helper()
	s := h.status(t)
	res, err := h.webUI(s, "/api/v1/namespaces/"+s.Namespace+"/workflows/"+url.PathEscape(
		id)+"/history?maximumPageSize=1")
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	var history struct {
		History struct {
			Events []struct {
				WorkflowExecutionStartedEventAttributes struct{ Input struct{ Payloads []payload } }
			}
		}
	}
	must(t, json.NewDecoder(res.Body).Decode(&history))
	if len(history.History.Events) == 0 || len(
		history.History.Events[0].WorkflowExecutionStartedEventAttributes.Input.Payloads) == 0 {
		t.Fatalf("%s has no input", id)
	}
	return history.History.Events[0].WorkflowExecutionStartedEventAttributes.Input.Payloads[0]
}

// TestTheWebUIShowsTheProgress reads, as the Web UI does, the table of an update at work.
func TestTheWebUIShowsTheProgress(t *testing.T) {
	t.Parallel()
	s := newStage(t, sharedHome(t))
	gate := s.gate(t, "named-2", fakecloud.Before)
	up := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	service, details := s.status(t), s.details(t)
	shows := func(workflow, text string) {
		t.Helper()
		eventually(t, "the details of the "+workflow+" show "+text, func() bool {
			return strings.Contains(details(workflow+"/organization/"+projectName(t)+"/dev/1"), text)
		})
	}
	shows("run", "| create | fake:index:Named | named-2 |")
	shows("update", "[its Run](/namespaces/"+service.Namespace+"/workflows/run%2Forganization")
	must(t, gate.Open(t.Context()))
	up.mustEnd(t, 0)
	shows("update", "**succeeded**")
}

// details gives what reads, as the Web UI does, the current details of workflows.
func (p *project) details(t *testing.T) func(workflow string) string {
	t.Helper()
	service := p.status(t)
	options, err := service.Options()
	must(t, err)
	options.DataConverter = asItIs{converter.GetDefaultDataConverter()}
	temporal, err := client.Dial(options)
	must(t, err)
	t.Cleanup(temporal.Close)
	browser := p.browser(t)
	return func(workflow string) string {
		value, err := temporal.QueryWorkflow(t.Context(), workflow, "", "__temporal_workflow_metadata")
		must(t, err)
		var sealed payload
		must(t, value.Get(&sealed))
		opened, _ := decoded(t, browser, service, sealed)
		return opened
	}
}

// asItIs gives payloads without opening them.
type asItIs struct{ converter.DataConverter }

func (asItIs) FromPayloads(p *common.Payloads, values ...any) error {
	*values[0].(*payload) = payload{p.GetPayloads()[0].GetMetadata(), p.GetPayloads()[0].GetData()}
	return nil
}

// TestABrowserShowsAnUpdate reads the page of an update at work in a headless browser: the table of its progress, and
// its payloads, which the browser opens.
func TestABrowserShowsAnUpdate(t *testing.T) {
	t.Parallel()
	s := newStage(t, sharedHome(t))
	gate := s.gate(t, "named-2", fakecloud.Before)
	up := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	name := "organization/" + projectName(t) + "/dev/1"
	service, execution := s.status(t), s.describe(t, "run/"+name).WorkflowExecutionInfo.Execution
	at := "/namespaces/" + service.Namespace + "/workflows/" + url.PathEscape(execution.WorkflowID) + "/" +
		execution.RunID
	p := openPage(t, s.uiLink(t)+"&to="+url.QueryEscape(at+"/user-metadata"))
	shows := func(what, expression string, texts ...string) {
		t.Helper()
		got := ""
		eventually(t, what, func() bool {
			got = p.text(t, expression)
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(got, text) })
		})
	}
	frame := func(id string) string { return "document.getElementById('" + id + "').contentDocument.body.innerText" }
	shows("the browser shows the summary", frame("user-metadata-summary"), "up "+projectName(t)+"/dev, version 1")
	shows("the browser shows the table of the progress", frame("user-metadata-current-details"), "create",
		"fake:index:Named", "named-2")
	must(t, gate.Open(t.Context()))
	up.mustEnd(t, 0)
	p = openPage(t, s.uiLink(t)+"&to="+url.QueryEscape(at+"/history"))
	shows("the browser shows the end, and opens payloads", "document.body.innerText", name, "Completed", "[sealed]")
}
