package wire

import (
	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"google.golang.org/protobuf/types/known/durationpb"
)

// FromScope writes the scope of webhooks.
func FromScope(s deployments.WebhookScope) *api.WebhookScope {
	return &api.WebhookScope{Organization: s.Organization, Project: s.Project, Stack: s.Stack}
}

// ToScope reads the scope of webhooks.
func ToScope(m *api.WebhookScope) deployments.WebhookScope {
	return deployments.WebhookScope{Organization: m.GetOrganization(), Project: m.GetProject(), Stack: m.GetStack()}
}

// FromWebhookName writes a webhook's name.
func FromWebhookName(n deployments.WebhookName) *api.WebhookName {
	return &api.WebhookName{Scope: FromScope(n.Scope), Name: n.Name}
}

// ToWebhookName reads a webhook's name.
func ToWebhookName(m *api.WebhookName) deployments.WebhookName {
	return deployments.WebhookName{Scope: ToScope(m.GetScope()), Name: m.GetName()}
}

// FromWebhook writes a webhook.
func FromWebhook(w deployments.Webhook) *api.Webhook {
	return &api.Webhook{
		Name: FromWebhookName(w.Name), Title: w.Title, Url: w.URL, Format: string(w.Format), Events: w.Events,
		Groups: w.Groups, Paused: w.Paused, Secret: w.Secret, HasSecret: w.HasSecret, Created: fromTime(w.Created),
	}
}

// ToWebhook reads a webhook.
func ToWebhook(m *api.Webhook) deployments.Webhook {
	return deployments.Webhook{
		Name: ToWebhookName(m.GetName()), Title: m.GetTitle(), URL: m.GetUrl(),
		Format: deployments.WebhookFormat(m.GetFormat()), Events: m.GetEvents(), Groups: m.GetGroups(),
		Paused: m.GetPaused(), Secret: m.GetSecret(), HasSecret: m.GetHasSecret(), Created: toTime(m.GetCreated()),
	}
}

// FromDelivery writes what became of an event.
func FromDelivery(d deployments.WebhookDelivery) *api.WebhookDelivery {
	return &api.WebhookDelivery{
		Id: d.ID, Event: d.Event, Kind: d.Kind, At: fromTime(d.At), Sent: fromTime(d.Sent), Took: durationpb.New(d.Took),
		Attempt: int64(d.Attempt), Url: d.URL, Payload: d.Payload, Headers: d.Headers, Status: int64(d.Status),
		Answer: d.Answer, Answered: d.Answered, Error: d.Error,
	}
}

// ToDelivery reads what became of an event.
func ToDelivery(m *api.WebhookDelivery) deployments.WebhookDelivery {
	return deployments.WebhookDelivery{
		ID: m.GetId(), Event: m.GetEvent(), Kind: m.GetKind(), At: toTime(m.GetAt()), Sent: toTime(m.GetSent()),
		Took: toDuration(m.GetTook()), Attempt: int(m.GetAttempt()), URL: m.GetUrl(), Payload: m.GetPayload(),
		Headers: m.GetHeaders(), Status: int(m.GetStatus()), Answer: m.GetAnswer(), Answered: m.GetAnswered(),
		Error: m.GetError(),
	}
}

// FromWebhooks and the functions after it translate lists.
func FromWebhooks(list []deployments.Webhook) []*api.Webhook { return each(list, FromWebhook) }

// ToWebhooks reads a list of webhooks.
func ToWebhooks(list []*api.Webhook) []deployments.Webhook { return each(list, ToWebhook) }

// FromDeliveries writes a list of deliveries.
func FromDeliveries(list []deployments.WebhookDelivery) []*api.WebhookDelivery {
	return each(list, FromDelivery)
}

// ToDeliveries reads a list of deliveries.
func ToDeliveries(list []*api.WebhookDelivery) []deployments.WebhookDelivery {
	return each(list, ToDelivery)
}
