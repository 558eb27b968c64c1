package deployments

import (
	"context"
	"net/url"
	"slices"
	"time"
)

// WebhookScope is what the events of a webhook are about: all stacks of an organization, or, with Project and Stack,
// one of them.
type WebhookScope struct {
	Organization string `json:"organization"`
	Project      string `json:"project,omitempty"`
	Stack        string `json:"stack,omitempty"`
}

// ScopeOf is the scope of a stack's own webhooks.
func ScopeOf(s StackName) WebhookScope { return WebhookScope(s) }

// OfStack reports whether the scope is one stack.
func (s WebhookScope) OfStack() bool { return s.Project != "" || s.Stack != "" }

// StackName is the stack of a scope that is OfStack.
func (s WebhookScope) StackName() StackName { return StackName(s) }

// String gives ORG or ORG/PROJECT/STACK.
func (s WebhookScope) String() string {
	if s.OfStack() {
		return s.StackName().String()
	}
	return s.Organization
}

// Validate reports, as CodeInvalid, a name that cannot be used.
func (s WebhookScope) Validate() error {
	if s.OfStack() {
		return s.StackName().Validate()
	}
	return ValidateName("organization", s.Organization)
}

// WebhookName names a webhook in its scope. The service makes the names.
type WebhookName struct {
	Scope WebhookScope `json:"scope"`
	Name  string       `json:"name"`
}

// Validate reports, as CodeInvalid, a part of the name that cannot be used.
func (n WebhookName) Validate() error {
	if err := n.Scope.Validate(); err != nil {
		return err
	}
	return ValidateName("webhook", n.Name)
}

// WebhookFormat is how a webhook writes events.
type WebhookFormat string

// The formats: the hosted service's JSON, and the messages of Slack and of Microsoft Teams.
const (
	WebhookRaw   WebhookFormat = "raw"
	WebhookSlack WebhookFormat = "slack"
	WebhookTeams WebhookFormat = "ms_teams"
)

// Webhook sends events to a URL.
type Webhook struct {
	Name   WebhookName   `json:"name"`
	Title  string        `json:"title"`
	URL    string        `json:"url"`
	Format WebhookFormat `json:"format"`
	// Events and Groups are what it is sent; none of both means everything.
	Events []string `json:"events,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// Paused: it is sent nothing.
	Paused bool `json:"paused,omitempty"`
	// Secret is the key of the signatures. It is only ever given: in the answers of the service it is empty, and
	// HasSecret says whether there is one. A change without a Secret keeps that if HasSecret is set, and removes it
	// otherwise.
	Secret    string    `json:"secret,omitempty"`
	HasSecret bool      `json:"hasSecret,omitempty"`
	Created   time.Time `json:"created,omitzero"` // set by the service
}

// Limits of webhooks.
const (
	MaxWebhooks       = 20   // of one scope
	MaxWebhookURL     = 2048 // bytes
	MaxWebhookTitle   = 200  // bytes
	MaxWebhookSecret  = 1024 // bytes
	WebhookLogEntries = 50   // deliveries that are kept of a webhook
)

// Validate reports, as CodeInvalid, why the webhook is not possible. Its name is checked when it has one.
func (w Webhook) Validate() error {
	if err := w.Name.Scope.Validate(); err != nil {
		return err
	}
	if w.Name.Name != "" {
		if err := w.Name.Validate(); err != nil {
			return err
		}
	}
	if w.Title == "" {
		return Errorf(CodeInvalid, "a webhook needs a name for people (--name)")
	}
	if err := validateText("name of the webhook", w.Title, MaxWebhookTitle); err != nil {
		return err
	}
	if err := validateWebhookURL(w.URL); err != nil {
		return err
	}
	if len(w.Secret) > MaxWebhookSecret {
		return Errorf(CodeInvalid, "the secret of the webhook is %d bytes long; at most %d are allowed", len(w.Secret),
			MaxWebhookSecret)
	}
	if !slices.Contains([]WebhookFormat{WebhookRaw, WebhookSlack, WebhookTeams}, w.Format) {
		return Errorf(CodeInvalid, "%s is not a format of webhooks: use raw, slack or ms_teams", quoted(string(w.Format)))
	}
	return w.validateEvents()
}

// validateWebhookURL reports a URL that cannot be sent to. Where it may lead is checked by the worker that sends.
func validateWebhookURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case len(text) > MaxWebhookURL:
		return Errorf(CodeInvalid, "the URL of the webhook is %d bytes long; at most %d are allowed", len(text),
			MaxWebhookURL)
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return Errorf(CodeInvalid, "%s is not the URL of a server: write https://HOST/PATH", quoted(text))
	case u.User != nil:
		return Errorf(CodeInvalid, "the URL of the webhook has a user or a password: sign with --secret instead")
	}
	return nil
}

func (w Webhook) validateEvents() error {
	for _, group := range w.Groups {
		if eventGroups[group] == nil {
			return Errorf(CodeInvalid, "%s is not a group of events: use stacks, deployments or policies", quoted(group))
		}
	}
	for _, event := range w.Events {
		if !isWebhookEvent(event) {
			return Errorf(CodeInvalid, "%s is not an event of webhooks: docs/webhooks.md lists them", quoted(event))
		}
	}
	return nil
}

// Wants reports whether the webhook is to be sent an event.
func (w Webhook) Wants(event string) bool {
	if w.Paused {
		return false
	}
	if len(w.Events)+len(w.Groups) == 0 || slices.Contains(w.Events, event) {
		return true
	}
	return slices.ContainsFunc(w.Groups, func(group string) bool { return slices.Contains(eventGroups[group], event) })
}

// WebhookDelivery is what became of sending one event to one webhook: its last attempt.
type WebhookDelivery struct {
	ID       string        `json:"id"`    // of the event
	Event    string        `json:"event"` // such as update_succeeded, or ping
	Kind     string        `json:"kind"`  // such as stack_update
	At       time.Time     `json:"at"`    // of the event
	Sent     time.Time     `json:"sent"`
	Took     time.Duration `json:"took"`
	Attempt  int           `json:"attempt"`
	URL      string        `json:"url"`
	Payload  string        `json:"payload"`
	Headers  string        `json:"headers"` // of the request, without the signature
	Status   int           `json:"status,omitempty"`
	Answer   string        `json:"answer,omitempty"`        // the beginning of the answer's body
	Answered string        `json:"answerHeaders,omitempty"` // the answer's headers
	Error    string        `json:"error,omitempty"`         // empty: it was accepted
}

// Webhooks manages webhooks. A stack's need RoleDeployer on it, an organization's RoleAdmin over it.
type Webhooks interface {
	// PutWebhook creates a webhook, and names it, or changes the one of its name. Needs RoleDeployer. CodeNotFound:
	// there is no such webhook. CodeConflict: the scope has MaxWebhooks.
	PutWebhook(ctx context.Context, w Webhook) (Webhook, error)
	// Webhooks lists the webhooks of a scope, the oldest first. Needs RoleDeployer. Fails as every method does.
	Webhooks(ctx context.Context, s WebhookScope) ([]Webhook, error)
	// RemoveWebhook removes a webhook with its log. Needs RoleDeployer. CodeNotFound: there is no such webhook.
	RemoveWebhook(ctx context.Context, n WebhookName) error
	// SendWebhook sends an event of the log once more, or, without an id, a ping, and says what became of it. Needs
	// RoleDeployer. CodeNotFound: there is no such webhook, or no such event in its log. CodeNoWorker: no worker takes
	// the request up.
	SendWebhook(ctx context.Context, n WebhookName, id string) (WebhookDelivery, error)
	// WebhookDeliveries lists the last deliveries of a webhook, the latest event first. Needs RoleDeployer.
	// CodeNotFound: there is no such webhook.
	WebhookDeliveries(ctx context.Context, n WebhookName) ([]WebhookDelivery, error)
}
