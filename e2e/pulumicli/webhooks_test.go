//go:build unix

package pulumicli

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/jobs/webhooks"
)

// receiver is a server that webhooks lead to. It refuses the first requests.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	refusing int
	events   []event
	arrived  func(event) // is called with each event that is accepted, before the answer
}

// event is one request that the receiver has accepted.
type event struct {
	path, kind, id, signature, body string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.refusing > 0 {
			r.refusing--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		e := event{req.URL.Path, req.Header.Get("Pulumi-Webhook-Kind"), req.Header.Get("Pulumi-Webhook-ID"),
			req.Header.Get("Pulumi-Webhook-Signature"), string(body)}
		r.events = append(r.events, e)
		if r.arrived != nil {
			r.arrived(e)
		}
		_, _ = io.WriteString(w, "thank you")
	}))
	t.Cleanup(r.Close)
	return r
}

// got waits for an event at a path whose body has a text.
func (r *receiver) got(t *testing.T, path, text string) (found event) {
	t.Helper()
	harness.Eventually(t, "an event at "+path+" with "+text, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range r.events {
			if e.path == path && strings.Contains(e.body, text) {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// hook creates a webhook with the stock CLI and returns its id.
func hook(t *testing.T, p *harness.Tool, of string, args ...string) string {
	t.Helper()
	var w struct{ ID, Name string }
	args = append([]string{of, "webhook", "new", "--yes", "--output", "json"}, args...)
	harness.Must(t, json.Unmarshal([]byte(p.Must(t, args...)), &w))
	return cmp.Or(w.ID, w.Name) // of a stack and of an organization
}

// hooks makes, edits, pings and removes webhooks, and checks what they are sent while the stack is updated.
func hooks(t *testing.T, h *harness.Home, s service) {
	_, env := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	ours := h.Deployctl(dir, env)
	p := s.login(t, ours)
	r := newReceiver(t)
	all := hook(t, p, "org", "--name", "everything", "--url", r.URL+"/org", "--org", "organization")
	p.Must(t, "stack", "init", "hooked")
	p.Must(t, "config", "set", "password", secret, "--secret")
	ours.Must(t, "stack", "select", "hooked")
	r.got(t, "/org", `"action":"created"`)

	const key = "the-key-of-the-signatures"
	signed := hook(t, p, "stack", "--name", "signed", "--url", r.URL+"/signed", "--secret", key)
	failing := hook(t, p, "stack", "--name", "only failures", "--url", r.URL+"/slack", "--hook-format", "slack",
		"--event", "update_failed", "--event", "destroy_failed")
	refuses(t, p, "is not the URL of a server", "stack", "webhook", "new", "--yes", "--name", "x", "--url", "nonsense")
	refuses(t, p, "no webhooks that start deployments", "stack", "webhook", "new", "--yes", "--name", "x", "--url",
		r.URL, "--hook-format", "pulumi_deployments")
	shown := p.Must(t, "stack", "webhook", "get", signed, "--output", "json") + p.Must(t, "stack", "webhook", "list")
	if strings.Contains(shown, key) || !strings.Contains(shown, "only failures") {
		t.Errorf("the webhooks are shown as %s", shown)
	}
	said(t, p, "200", "stack", "webhook", "ping", signed)
	if e := r.got(t, "/signed", "ping"); e.kind != "ping" || e.signature != webhooks.Sign(key, e.body) {
		t.Errorf("the ping is %+v", e)
	}
	r.mu.Lock()
	r.refusing = 1 // of the events of the update, one is sent again
	r.mu.Unlock()
	said(t, p, "3 created", with("up")...)
	e := r.got(t, "/signed", `"kind":"update"`)
	r.got(t, "/org", `"kind":"update"`)
	if e.kind != "stack_update" || e.signature != webhooks.Sign(key, e.body) || strings.Contains(e.body, secret) ||
		!strings.Contains(e.body, `"result":"succeeded"`) || !strings.Contains(e.body, `"create":`) {
		t.Errorf("the event of the update is %+v", e)
	}
	said(t, p, "3 unchanged", "preview", "--non-interactive", "--expect-no-changes")
	r.got(t, "/signed", `"isPreview":true`)
	ours.Update(t, "refresh") // by the engine of the service
	r.got(t, "/signed", `"kind":"refresh"`)
	redelivers(t, p, r, signed, e)

	harness.Must(t, os.WriteFile(filepath.Join(dir, "Pulumi.yaml"), []byte("name: shop\nruntime: yaml\n"+
		"resources:\n  web: {type: 'fake:index:Nothing'}\n"), 0o600))
	if end := p.Run(t, with("up")...); end.Code == 0 {
		t.Errorf("an update of a type that does not exist succeeds: %s", end.Said())
	}
	if e := r.got(t, "/slack", "update failed"); strings.Contains(e.body, "succeeded") {
		t.Errorf("the message is %+v", e)
	}
	said(t, p, "", "stack", "webhook", "edit", failing, "--active=false", "--display-name", "paused")
	said(t, ours, "paused", "webhook", "ls")
	for _, id := range []string{signed, failing} {
		said(t, p, "has been removed", "stack", "webhook", "rm", id, "--yes")
	}
	refuses(t, p, "no webhook "+signed, "stack", "webhook", "get", signed)
	said(t, p, "", with("destroy")...)
	said(t, p, "", "stack", "rm", "--yes")
	r.got(t, "/org", `"action":"deleted"`)
	said(t, p, "200", "org", "webhook", "ping", all, "--org", "organization")
	said(t, p, "stack_update", "org", "webhook", "delivery", "list", all, "--org", "organization")
	said(t, p, "has been removed", "org", "webhook", "rm", all, "--yes", "--org", "organization")
}

// redelivers sends an event of the log again: it is the same, signed anew.
func redelivers(t *testing.T, p *harness.Tool, r *receiver, hook string, e event) {
	t.Helper()
	said(t, p, e.id, "stack", "webhook", "delivery", "list", hook)
	r.mu.Lock()
	r.events = nil
	r.mu.Unlock()
	said(t, p, "thank you", "stack", "webhook", "delivery", "redeliver", hook, e.id)
	if again := r.got(t, "/signed", `"kind":"update"`); again != e {
		t.Errorf("it is delivered again as %+v, not %+v", again, e)
	}
	refuses(t, p, "has no event", "stack", "webhook", "delivery", "redeliver", hook, "nothing")
}
