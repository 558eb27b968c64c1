package webhooks

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

var (
	dev  = deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}
	over = deployments.EventOf(deployments.UpdateInfo{
		Update: deployments.UpdateName{StackName: dev, Version: "42"}, Kind: "destroy", Status: deployments.StatusFailed,
		Initiator: "ann", Changes: map[string]int{"delete": 2, "same": 3}, Error: "quota <exceeded>",
		Message: "the move to <eu>",
		Started: time.Unix(1_700_000_000, 0), Ended: time.Unix(1_700_000_100, 0)})
)

// receiver is a server that webhooks lead to.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
	answer   func(http.ResponseWriter, *http.Request)
}

func newReceiver(t *testing.T, answer func(http.ResponseWriter, *http.Request)) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.requests, r.bodies = append(r.requests, req), append(r.bodies, string(body))
		r.mu.Unlock()
		if r.answer != nil {
			r.answer(w, req)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// bench has a webhook in a store, and delivers to it.
type bench struct {
	*testing.T
	store *statestore.Store
	name  deployments.WebhookName
	ago   time.Duration // since somebody asked for what is delivered
}

func newBench(t *testing.T, w deployments.Webhook) *bench {
	t.Helper()
	store, err := statestore.New(storetest.NewContended(&bucket.Memory{}),
		statestore.Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	w.Name = deployments.WebhookName{Scope: deployments.ScopeOf(dev), Name: "hook"}
	if err := store.Jobs.ChangeWebhooks(t.Context(), w.Name.Scope,
		func([]deployments.Webhook) ([]deployments.Webhook, error) { return []deployments.Webhook{w}, nil }); err != nil {
		t.Fatal(err)
	}
	return &bench{t, store, w.Name, 0}
}

// deliver makes one attempt to send an event, as a worker does.
func (b *bench) deliver(n Network, once bool) (d deployments.WebhookDelivery, err error) {
	b.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(waittest.Patience)
	acts := &Activities{Store: b.store, Network: n}
	env.RegisterActivity(acts)
	value, err := env.ExecuteActivity(acts.DeliverEvent, deployments.DeliverInput{Event: over, Webhook: b.name, Once: once,
		Asked: time.Now().Add(-b.ago)})
	if err != nil {
		return d, err
	}
	return d, value.Get(&d)
}

func (b *bench) logged() []deployments.WebhookDelivery {
	b.Helper()
	log, err := b.store.Jobs.Deliveries(b.Context(), b.name, "")
	if err != nil {
		b.Fatal(err)
	}
	return log
}

func TestAnEventIsSentSignedAndLogged(t *testing.T) {
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thanks\x1b[2J") })
	b := newBench(t, deployments.Webhook{URL: r.URL + "/in?key=1", Format: deployments.WebhookRaw, Secret: "shared"})
	d, err := b.deliver(Network{Private: true}, false)
	if err != nil || d.Status != http.StatusOK || d.Error != "" || d.Answer != "thanks" {
		t.Fatalf("it ends as %+v, %v", d, err)
	}
	got, body := r.requests[0], r.bodies[0]
	for name, want := range map[string]string{"Pulumi-Webhook-ID": over.ID, "Pulumi-Webhook-Kind": "stack_update",
		"Pulumi-Webhook-Signature": Sign("shared", body), "Content-Type": "application/json"} {
		if got.Header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Header.Get(name), want)
		}
	}
	if got.Method != http.MethodPost || got.URL.String() != "/in?key=1" {
		t.Errorf("it is sent as %s %s", got.Method, got.URL)
	}
	log := b.logged()
	if len(log) != 1 || log[0].Payload != body || log[0].ID != over.ID ||
		strings.Contains(log[0].Headers, Sign("shared", body)) || strings.Contains(log[0].Headers, "shared") {
		t.Errorf("the log has %+v", log)
	}
}

// signature was computed with another implementation of HMAC-SHA256.
const signature = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"

func TestASignatureIsTheHMACOfThePayload(t *testing.T) {
	if got := Sign("key", "The quick brown fox jumps over the lazy dog"); got != signature {
		t.Errorf("it is %s", got)
	}
}

func TestAFailedAttemptIsRepeatedUnlessTheReceiverRefusesTheRequest(t *testing.T) {
	for status, again := range map[int]bool{500: true, 503: true, 429: true, 408: true, 400: false, 404: false,
		410: false, 302: false} {
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://169.254.169.254/")
			w.WriteHeader(status)
		})
		b := newBench(t, deployments.Webhook{URL: r.URL})
		_, err := b.deliver(Network{Private: true}, false)
		if err == nil || strings.Contains(err.Error(), "retryable: true") != again {
			t.Errorf("%d: %v", status, err)
		}
		if log := b.logged(); len(log) != 1 || log[0].Status != status || log[0].Error == "" || len(r.requests) != 1 {
			t.Errorf("%d: after %d requests the log has %+v", status, len(r.requests), log)
		}
		if d, err := b.deliver(Network{Private: true}, true); err != nil || d.Status != status {
			t.Errorf("%d, once: %+v, %v", status, d, err)
		}
	}
}

func TestEventsAreSentToPublicAddressesOnly(t *testing.T) {
	r := newReceiver(t, nil)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, url string
		network   Network
		sent      bool
	}{
		{"loopback", "https://127.0.0.1:" + port, Network{}, false},
		{"a name that leads to loopback", "https://localhost:" + port, Network{}, false},
		{"without TLS", "http://127.0.0.1:" + port, Network{}, false},
		{"the metadata of a cloud", "https://169.254.169.254/latest/meta-data", Network{}, false},
		{"an address within another", "https://[::ffff:127.0.0.1]:" + port, Network{}, false},
		{"another server is allowed", "http://127.0.0.1:" + port, Network{Hosts: []string{"10.0.0.1"}}, false},
		{"a name in a range", "https://localhost:" + port,
			Network{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, false},
		{"an allowed address", "http://127.0.0.1:" + port, Network{Hosts: []string{"127.0.0.1"}}, true},
		{"an allowed name", "http://LOCALHOST:" + port, Network{Hosts: []string{"localhost"}}, true},
		{"an allowed range", "http://127.0.0.1:" + port,
			Network{Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, true},
	} {
		r.requests = nil
		d, err := newBench(t, deployments.Webhook{URL: c.url}).deliver(c.network, true)
		if err != nil || (len(r.requests) == 1) != c.sent || (d.Error == "") != c.sent {
			t.Errorf("%s: %d requests, %+v, %v", c.name, len(r.requests), d, err)
		}
		if !c.sent && !strings.Contains(d.Error, "webhooks.private-hosts") {
			t.Errorf("%s: %s", c.name, d.Error)
		}
	}
}

func TestALongAnswerIsCut(t *testing.T) {
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("h", 3*maxAnswered))
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	})
	d, err := newBench(t, deployments.Webhook{URL: r.URL}).deliver(Network{Private: true}, true)
	if err != nil || len(d.Answer) > maxAnswer || len(d.Answered) > maxAnswered || d.Answer == "" {
		t.Errorf("%d bytes and %d of headers are kept, %v", len(d.Answer), len(d.Answered), err)
	}
}

func TestTheLogOfAWebhookKeepsTheLatestDeliveries(t *testing.T) {
	b := newBench(t, deployments.Webhook{URL: "https://example.com"})
	for i := range deployments.WebhookLogEntries + 3 {
		d := deployments.WebhookDelivery{ID: strconv.Itoa(i), At: time.Unix(int64(i), 0)}
		if err := b.store.Jobs.PutDelivery(t.Context(), b.name, d); err != nil {
			t.Fatal(err)
		}
	}
	if log := b.logged(); len(log) != deployments.WebhookLogEntries || log[0].ID != "52" || log[49].ID != "3" {
		t.Errorf("%d are kept, from %s to %s", len(log), log[0].ID, log[len(log)-1].ID)
	}
	if one, err := b.store.Jobs.Deliveries(context.WithoutCancel(t.Context()), b.name, "7"); err != nil || len(one) != 1 {
		t.Errorf("of one event it has %+v, %v", one, err)
	}
}

func TestAWebhookThatWasRemovedOrPausedIsSentNothing(t *testing.T) {
	r := newReceiver(t, nil)
	paused := newBench(t, deployments.Webhook{URL: r.URL, Paused: true})
	removed := newBench(t, deployments.Webhook{URL: r.URL})
	removed.name.Name = "other"
	for _, b := range []*bench{paused, removed} {
		if d, err := b.deliver(Network{Private: true}, false); err != nil || d.ID != "" || len(r.requests) != 0 {
			t.Errorf("%d requests, %+v, %v", len(r.requests), d, err)
		}
	}
}

func TestPayloadsHaveTheFieldsThatTheirReceiversRead(t *testing.T) {
	for format, paths := range map[deployments.WebhookFormat]map[string]string{
		deployments.WebhookRaw: {"user.githubLogin": "ann", "organization.name": "acme", "projectName": "shop",
			"stackName": "dev", "kind": "destroy", "result": "failed", "isPreview": "false",
			"resourceChanges.delete": "2", "version": "42", "message": "the move to <eu>"},
		deployments.WebhookSlack: {"text": "destroy failed: acme/shop/dev", "attachments.0.color": "danger",
			"attachments.0.fields.2.value": "the move to &lt;eu&gt;",
			"attachments.0.fields.4.value": "quota &lt;exceeded&gt;"},
		deployments.WebhookTeams: {"type": "message",
			"attachments.0.content.body.0.text":          "destroy failed: acme/shop/dev",
			"attachments.0.content.body.1.facts.3.value": "2 delete"},
	} {
		text, err := Payload(format, over)
		var v any
		if err != nil || json.Unmarshal([]byte(text), &v) != nil {
			t.Fatalf("%s: %s, %v", format, text, err)
		}
		for path, want := range paths {
			if got := at(v, path); got != want {
				t.Errorf("%s: %s is %q, want %q in\n%s", format, path, got, want, text)
			}
		}
	}
}

func TestTheIDOfAPreviewIsNotTold(t *testing.T) {
	preview := over
	preview.Version = "p-1d1a2454"
	for _, format := range []deployments.WebhookFormat{deployments.WebhookSlack, deployments.WebhookTeams} {
		for version, event := range map[string]deployments.WebhookEvent{"42": over, "p-1d1a2454": preview} {
			if text, err := Payload(format, event); err != nil || strings.Contains(text, version) != (version == "42") {
				t.Errorf("%s: %s %v", format, text, err)
			}
		}
	}
}

func TestADeploymentIsToldByItsNumber(t *testing.T) {
	e, happens := deployments.EventOfDeployments(deployments.Deployment{Operation: "update", RequestedBy: "ann",
		Name: deployments.DeploymentName{StackName: dev, Number: 7}, Status: deployments.DeploymentRunning})
	if !happens {
		t.Fatal("it has no event")
	}
	for format, paths := range map[deployments.WebhookFormat]map[string]string{
		deployments.WebhookRaw: {"user.githubLogin": "ann", "stackName": "dev", "operation": "update",
			"status": "started", "version": "7"},
		deployments.WebhookSlack: {"text": "deployment started: acme/shop/dev", "attachments.0.color": "good",
			"attachments.0.fields.1.value": "update", "attachments.0.fields.2.title": "Deployment"},
	} {
		text, err := Payload(format, e)
		var v any
		if err != nil || json.Unmarshal([]byte(text), &v) != nil {
			t.Fatalf("%s: %s, %v", format, text, err)
		}
		for path, want := range paths {
			if got := at(v, path); got != want {
				t.Errorf("%s: %s is %q, want %q in\n%s", format, path, got, want, text)
			}
		}
	}
}

// at returns what stands at a path in JSON, as text.
func at(v any, path string) string {
	for part := range strings.SplitSeq(path, ".") {
		switch of := v.(type) {
		case map[string]any:
			v = of[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(of) {
				return "nothing"
			}
			v = of[i]
		}
	}
	if text, ok := v.(string); ok {
		return text
	}
	text, _ := json.Marshal(v)
	return string(text)
}

func TestAnEventIsSentOnceHoweverOftenItsDeliveryIsRepeated(t *testing.T) {
	r := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t, deployments.Webhook{URL: r.URL, Format: deployments.WebhookRaw})
	b.ago = time.Hour
	for range 2 {
		if d, err := b.deliver(Network{Private: true}, false); err != nil || d.Status != http.StatusOK {
			t.Fatalf("it ends as %+v, %v", d, err)
		}
	}
	if len(r.requests) != 1 {
		t.Errorf("the event is sent %d times", len(r.requests))
	}
	b.ago = 0 // somebody asks for it again
	if _, err := b.deliver(Network{Private: true}, true); err != nil || len(r.requests) != 2 {
		t.Errorf("it is sent %d times, %v", len(r.requests), err)
	}
	b.ago = 26 * time.Hour
	if _, err := b.deliver(Network{Private: true}, true); err == nil || len(r.requests) != 2 {
		t.Errorf("a day later it is sent %d times, %v", len(r.requests), err)
	}
}
