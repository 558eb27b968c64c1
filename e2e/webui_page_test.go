package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// uiLink is a fresh link to the Web UI.
func (p *project) uiLink(t *testing.T) string {
	t.Helper()
	link := regexp.MustCompile(`http://\S+/open\?link=\S+`).FindString(p.must(t, "dev", "status"))
	if link == "" {
		t.Fatal("dev status prints no link")
	}
	return link
}

// decoded asks the codec endpoint, as the Web UI does in the browser, for the text of a payload.
func decoded(t *testing.T, browser *http.Client, s status, sealed payload) (text string, code int) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"payloads": []payload{sealed}})
	must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.CodecAddress+"/decode", bytes.NewReader(body))
	must(t, err)
	request.Header.Set("Origin", s.UIURL)
	res, err := browser.Do(request)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	var answer struct{ Payloads []payload }
	if res.StatusCode == http.StatusOK {
		must(t, json.NewDecoder(res.Body).Decode(&answer))
		_ = json.Unmarshal(answer.Payloads[0].Data, &text) // not a text: the caller sees that
	}
	return text, res.StatusCode
}

func TestTheWebUIOpensSummariesForWhomHasTheLink(t *testing.T) {
	t.Parallel()
	s := newStage(t, sharedHome(t))
	got := s.update(t, "up", "--message", "a | message")
	service, w := s.status(t), s.describe(t, "update/"+got.Update)
	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
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
	if code := open(link); code != http.StatusSeeOther {
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
	res, err := http.Get(s.UIURL + "/api/v1/namespaces/" + s.Namespace + "/workflows/" + url.PathEscape(id) + "/history?maximumPageSize=1")
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
	if len(history.History.Events) == 0 || len(history.History.Events[0].WorkflowExecutionStartedEventAttributes.Input.Payloads) == 0 {
		t.Fatalf("%s has no input", id)
	}
	return history.History.Events[0].WorkflowExecutionStartedEventAttributes.Input.Payloads[0]
}

// TestABrowserShowsTheProgress looks at the Web UI with a headless browser while a create is held. It needs chromium on
// PATH (Debian: apt-get install chromium).
func TestABrowserShowsTheProgress(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium on PATH")
	}
	t.Parallel()
	s := newStage(t, sharedHome(t))
	gate := s.gate(t, "named-2", fakecloud.Before)
	up := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	service := s.status(t)
	run := s.describe(t, "run/organization/"+projectName(t)+"/dev/1").WorkflowExecutionInfo.Execution
	page := "/namespaces/" + service.Namespace + "/workflows/" + url.PathEscape(run.WorkflowID) + "/" + run.RunID
	var dom string
	eventually(t, "the page shows the progress", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		shown, err := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
			"--virtual-time-budget=20000", "--dump-dom", s.uiLink(t)+"&to="+url.QueryEscape(page+"/history")).Output()
		must(t, err)
		dom = string(shown)
		return strings.Contains(dom, "<td>fake:index:Named</td>")
	})
	for _, text := range []string{"up " + projectName(t) + "/dev, version 1", "create fake:index:Named named-2"} {
		if !strings.Contains(dom, text) {
			t.Errorf("the page does not show %q", text)
		}
	}
	must(t, gate.Open(t.Context()))
	up.mustEnd(t, 0)
}
