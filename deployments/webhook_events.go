package deployments

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/engine"
)

// WebhookEvent is something that webhooks are told.
type WebhookEvent struct {
	// ID is the same for every delivery of the event.
	ID    string    `json:"id"`
	Name  string    `json:"name"` // such as update_succeeded
	Kind  string    `json:"kind"` // such as stack_update
	Stack StackName `json:"stack"`
	Actor string    `json:"actor,omitempty"` // who caused it
	At    time.Time `json:"at"`
	// Operation is that of an update or of a deployment, Status how it ended, Version its version or number.
	Operation string         `json:"operation,omitempty"`
	Status    string         `json:"status,omitempty"`
	Version   string         `json:"version,omitempty"`
	Changes   map[string]int `json:"changes,omitempty"`
	Drifted   int            `json:"drifted,omitempty"` // resources
	Error     string         `json:"error,omitempty"`
	// Message is what whoever asked for an update has said about it.
	Message string `json:"message,omitempty"`
}

// Kinds of events, as the header Pulumi-Webhook-Kind has them.
const (
	EventOfPing        = "ping"
	EventOfStack       = "stack"
	EventOfUpdate      = "stack_update"
	EventOfPreview     = "stack_preview"
	EventOfDeployment  = "deployment"
	EventOfDrift       = "drift_detection"
	EventOfRemediation = "drift_remediation"
)

// Events that are not made of an operation and its end.
const (
	EventStackCreated  = "stack_created"
	EventStackDeleted  = "stack_deleted"
	EventDriftDetected = "drift_detected"
)

// eventGroups are the groups of events that webhooks subscribe to. Those of policies, of environments, of change
// requests and of the files of deployments never happen; they are here because clients name them.
var eventGroups = map[string][]string{
	"stacks": append([]string{EventStackCreated, EventStackDeleted},
		ends("update", "preview", "destroy", "refresh", "import")...),
	"deployments": append([]string{"deployment_queued", "deployment_started", "deployment_file_ingestion_failed",
		EventDriftDetected}, ends("deployment", "drift_detection", "drift_remediation")...),
	"policies":        {"policy_violation_mandatory", "policy_violation_advisory"},
	"environments":    {},
	"change_requests": {},
}

func ends(of ...string) (events []string) {
	for _, what := range of {
		events = append(events, what+"_succeeded", what+"_failed")
	}
	return events
}

func isWebhookEvent(name string) bool {
	for _, group := range eventGroups {
		if slices.Contains(group, name) {
			return true
		}
	}
	return false
}

// operationNames are the operations of updates, as events have them.
var operationNames = map[engine.Kind]string{
	engine.KindUp: "update", engine.KindRefresh: "refresh", engine.KindDestroy: "destroy", engine.KindImport: "import",
}

// maxEventText limits WebhookEvent.Error and Message.
const maxEventText = 500

// EventOf is the event of the end of an update or of a preview.
func EventOf(info UpdateInfo) WebhookEvent {
	e := WebhookEvent{Kind: EventOfUpdate, Stack: info.Update.StackName, Actor: info.Initiator, At: info.Ended,
		Operation: operationNames[info.Kind], Version: info.Update.Version, Changes: info.Changes, Error: info.Error,
		Message: info.Message}
	what := e.Operation
	if info.DryRun {
		e.Kind, what = EventOfPreview, "preview"
	}
	e.end(what, info.Status == StatusSucceeded)
	return e.identified(info.Started)
}

// EventOfStacks is the event of the creation or the removal of a stack.
func EventOfStacks(s StackName, name, actor string, at time.Time) WebhookEvent {
	e := WebhookEvent{Name: name, Kind: EventOfStack, Stack: s, Actor: actor, At: at,
		Status: strings.TrimPrefix(name, "stack_")}
	return e.identified(at)
}

// EventsOfDrift are the events of a drift check that has ended, or of a remediation.
func EventsOfDrift(d Drift, check UpdateInfo) []WebhookEvent {
	e := WebhookEvent{Kind: EventOfDrift, Stack: check.Update.StackName, Actor: check.Initiator, At: d.At,
		Operation: "detect-drift", Version: check.Update.Version, Changes: check.Changes, Drifted: len(d.Resources),
		Error: check.Error, Message: check.Message}
	what := "drift_detection"
	if !check.DryRun {
		e.Kind, e.Operation, what = EventOfRemediation, "remediate-drift", "drift_remediation"
	}
	if e.At.IsZero() {
		e.At = check.Ended
	}
	e.end(what, check.Status == StatusSucceeded)
	events := []WebhookEvent{e.identified(check.Started)}
	if check.DryRun && len(d.Resources) > 0 {
		e.Name = EventDriftDetected
		events = append(events, e.identified(check.Started))
	}
	return events
}

// EventOfDeployments is the event of what a deployment has come to; false if that is none: a deployment that is skipped
// never starts.
func EventOfDeployments(d Deployment) (WebhookEvent, bool) {
	e := WebhookEvent{Kind: EventOfDeployment, Stack: d.Name.StackName, Actor: d.RequestedBy, At: d.Modified,
		Operation: string(d.Operation), Version: strconv.Itoa(d.Name.Number), Error: d.Error}
	switch d.Status {
	case DeploymentNotStarted, DeploymentAccepted:
		e.Status, e.At = "queued", d.Created
	case DeploymentRunning:
		e.Status = "started"
	case DeploymentFailed, DeploymentSucceeded:
		e.Status = string(d.Status)
	case DeploymentSkipped:
		return e, false
	}
	e.Name = EventOfDeployment + "_" + e.Status
	e.clip()
	return e.identified(d.Created), true
}

func (e *WebhookEvent) end(what string, succeeded bool) {
	e.Status = "failed"
	if succeeded {
		e.Status = "succeeded"
	}
	e.Name = what + "_" + e.Status
	e.clip()
}

// clip keeps the beginnings of long texts.
func (e *WebhookEvent) clip() {
	for _, text := range []*string{&e.Error, &e.Message} {
		if len(*text) > maxEventText {
			*text = strings.ToValidUTF8((*text)[:maxEventText], "") + "…"
		}
	}
}

// identified gives an event an id that is made from what it is about, so that an event that is told twice is one.
func (e WebhookEvent) identified(since time.Time) WebhookEvent {
	sum := sha256.Sum256([]byte(strings.Join([]string{e.Stack.String(), e.Version, e.Name,
		since.UTC().Format(time.RFC3339Nano)}, "\n")))
	e.ID = hex.EncodeToString(sum[:16])
	return e
}

// WebhookWorkflowID names the workflow that tells webhooks an event. Each attempt that a person asks for has one of its
// own.
func WebhookWorkflowID(in NotifyInput) string {
	id := "webhooks/" + in.Event.Stack.String() + "/" + in.Event.ID
	if in.Once {
		id += "/" + in.Attempt
	}
	return id
}

// Names of the workflow that delivers events and of its activity, as they stand in recorded histories.
const (
	WorkflowNotify       = "Notify"       // NotifyInput → NotifyOutput
	ActivityDeliverEvent = "DeliverEvent" // DeliverInput → WebhookDelivery
)

// NotifyInput tells webhooks an event.
type NotifyInput struct {
	Event    WebhookEvent  `json:"event"`
	Webhooks []WebhookName `json:"webhooks"`
	// Once makes one attempt and returns what became of it, whatever that is.
	Once bool `json:"once,omitempty"`
	// Attempt is a random text that tells attempts with Once apart.
	Attempt string `json:"attempt,omitempty"`
	// Payload is what to send, if the event was sent before.
	Payload string `json:"payload,omitempty"`
	// Asked is when the service asked for this.
	Asked time.Time `json:"asked"`
}

// NotifyOutput has a delivery for each webhook, in their order.
type NotifyOutput struct {
	Deliveries []WebhookDelivery `json:"deliveries"`
}

// DeliverInput sends an event to a webhook.
type DeliverInput struct {
	Event   WebhookEvent `json:"event"`
	Webhook WebhookName  `json:"webhook"`
	Once    bool         `json:"once,omitempty"`
	Payload string       `json:"payload,omitempty"`
	Asked   time.Time    `json:"asked"`
}
