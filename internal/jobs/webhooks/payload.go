package webhooks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// party is a user or an organization in a payload, with the hosted service's names of fields.
type party struct {
	Name   string `json:"name"`
	Login  string `json:"githubLogin"`
	Avatar string `json:"avatarUrl"`
}

// raw is the hosted service's payload. Which fields are there depends on the kind of the event.
type raw struct {
	User         *party `json:"user,omitempty"`
	Organization *party `json:"organization,omitempty"`
	Action       string `json:"action,omitempty"`
	Project      string `json:"projectName,omitempty"`
	Stack        string `json:"stackName,omitempty"`

	Kind    string         `json:"kind,omitempty"`
	Result  string         `json:"result,omitempty"`
	Changes map[string]int `json:"resourceChanges,omitempty"`
	Preview *bool          `json:"isPreview,omitempty"`

	Operation string `json:"operation,omitempty"`
	Status    string `json:"status,omitempty"`
	Drifted   *bool  `json:"driftDetected,omitempty"`
	DriftRun  string `json:"driftRunId,omitempty"`

	Version   int    `json:"version,omitempty"`
	Error     string `json:"error,omitempty"`
	Timestamp int64  `json:"timestamp"`
	Message   string `json:"message,omitempty"`
}

// Payload writes an event in the format of a webhook.
func Payload(format deployments.WebhookFormat, e deployments.WebhookEvent) (string, error) {
	var v any
	switch format {
	case deployments.WebhookSlack:
		v = slackMessage(e)
	case deployments.WebhookTeams:
		v = teamsMessage(e)
	default:
		v = rawEvent(e)
	}
	data, err := json.Marshal(v)
	return string(data), err
}

func rawEvent(e deployments.WebhookEvent) raw {
	r := raw{Timestamp: e.At.Unix(), Error: e.Error, Message: e.Message}
	if e.Kind == deployments.EventOfPing {
		r.Message = "a ping of deployctl"
		return r
	}
	r.User, r.Organization = &party{Name: e.Actor, Login: e.Actor},
		&party{Name: e.Stack.Organization, Login: e.Stack.Organization}
	r.Project, r.Stack = e.Stack.Project, e.Stack.Stack
	r.Version, _ = strconv.Atoi(e.Version) // a preview has none
	r.Changes = e.Changes
	switch e.Kind {
	case deployments.EventOfStack:
		r.Action = e.Status
	case deployments.EventOfUpdate, deployments.EventOfPreview:
		preview := e.Kind == deployments.EventOfPreview
		r.Kind, r.Result, r.Preview = e.Operation, e.Status, &preview
	case deployments.EventOfDeployment, deployments.EventOfRemediation:
		r.Operation, r.Status = e.Operation, e.Status
	case deployments.EventOfDrift:
		drifted := e.Drifted > 0
		r.Status, r.Drifted, r.DriftRun = e.Status, &drifted, e.Version
	}
	return r
}

// headline says in one line what has happened, and where.
func headline(e deployments.WebhookEvent) string {
	if e.Kind == deployments.EventOfPing {
		return "a ping of deployctl"
	}
	return strings.ReplaceAll(e.Name, "_", " ") + ": " + e.Stack.String()
}

// details are the facts about an event, as names and values in turn.
func details(e deployments.WebhookEvent) (facts [][2]string) {
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, [2]string{name, value})
		}
	}
	add("By", e.Actor)
	if e.Kind == deployments.EventOfDeployment {
		add("Operation", e.Operation)
		add("Deployment", e.Version)
	} else if _, err := strconv.Atoi(e.Version); err == nil { // a preview and a drift check have an id, which says nothing
		add("Version", e.Version)
	}
	add("Message", e.Message)
	add("Changes", changes(e.Changes))
	if e.Drifted > 0 {
		add("Drifted resources", strconv.Itoa(e.Drifted))
	}
	add("Error", e.Error)
	return facts
}

// changes lists counts of changes, such as "2 create, 1 update"; what stays the same is none.
func changes(counts map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[kind]; n > 0 && kind != "same" {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return cmp.Or(strings.Join(parts, ", "))
}

// good reports whether an event is one of success.
func good(e deployments.WebhookEvent) bool {
	return e.Status != "failed" && e.Name != deployments.EventDriftDetected
}

// slackEscape writes text so that Slack finds no link, mention or markup of its own in it.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func slackMessage(e deployments.WebhookEvent) any {
	type field struct {
		Title string `json:"title"`
		Value string `json:"value"`
		Short bool   `json:"short"`
	}
	color, fields := "good", []field{}
	if !good(e) {
		color = "danger"
	}
	for _, fact := range details(e) {
		fields = append(fields, field{fact[0], slackEscape.Replace(fact[1]), fact[0] != "Error" && fact[0] != "Message"})
	}
	text := slackEscape.Replace(headline(e))
	return map[string]any{"text": text, "attachments": []any{map[string]any{
		"color": color, "fallback": text, "fields": fields, "ts": e.At.Unix()}}}
}

// teamsMessage is an adaptive card, which both Teams' workflows and its older connectors show.
func teamsMessage(e deployments.WebhookEvent) any {
	color, facts := "Good", []map[string]string{}
	if !good(e) {
		color = "Attention"
	}
	for _, fact := range details(e) {
		facts = append(facts, map[string]string{"title": fact[0], "value": fact[1]})
	}
	body := []any{map[string]any{"type": "TextBlock", "text": headline(e), "weight": "Bolder", "color": color,
		"wrap": true}}
	if len(facts) > 0 {
		body = append(body, map[string]any{"type": "FactSet", "facts": facts})
	}
	return map[string]any{"type": "message", "attachments": []any{map[string]any{
		"contentType": "application/vnd.microsoft.card.adaptive",
		"content": map[string]any{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
			"type": "AdaptiveCard", "version": "1.4", "body": body},
	}}}
}
