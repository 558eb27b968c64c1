package pulumiapi

import (
	"net/http"
	"strings"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// webhookRoutes are about the webhooks of a stack and of an organization.
func webhookRoutes() []route {
	const list, put = api.Webhooks_ListWebhooks_FullMethodName, api.Webhooks_PutWebhook_FullMethodName
	const send, logged = api.Webhooks_SendWebhook_FullMethodName, api.Webhooks_WebhookDeliveries_FullMethodName
	var all []route
	for _, of := range []struct{ path, what, deliveries string }{
		{stackPath + "/hooks", "Stack", "ListStackWebhookDeliveries"},
		{"/api/orgs/{org}/hooks", "Org", "ListOrgWebhookDeliveries"},
	} {
		one, name := of.path+"/{webhook}", of.what+"Webhook"
		redeliver := route{method: http.MethodPost, path: one + "/deliveries/{event}/redeliver", like: send,
			handle: redeliverWebhook}
		if of.what == "Stack" {
			redeliver.calls = calls("RedeliverStackWebhookEvent")
		}
		all = append(all,
			route{method: http.MethodGet, path: of.path, calls: calls("List" + name + "s"), like: list,
				handle: listWebhooks},
			route{method: http.MethodPost, path: of.path, calls: calls("Create" + name), like: put, handle: putWebhook},
			route{method: http.MethodGet, path: one, calls: calls("Get" + name), like: list, handle: getWebhook},
			route{method: http.MethodPatch, path: one, calls: calls("Update" + name), like: put, handle: putWebhook},
			route{method: http.MethodDelete, path: one, calls: calls("Delete" + name),
				like: api.Webhooks_RemoveWebhook_FullMethodName, handle: removeWebhook},
			route{method: http.MethodPost, path: one + "/ping", calls: calls("Ping" + name), like: send,
				handle: pingWebhook},
			route{method: http.MethodGet, path: one + "/deliveries", calls: calls(of.deliveries), like: logged,
				handle: listDeliveries},
			redeliver)
	}
	return all
}

// webhookScope returns the scope of the path, if the caller may see and change its webhooks.
func (c *call) webhookScope() (deployments.WebhookScope, error) {
	scope := deployments.WebhookScope{Organization: c.PathValue("org"), Project: c.PathValue("project"),
		Stack: c.PathValue("stack")}
	err := grpcapi.AllowWebhooks(c.caller, scope)
	if scope.Validate() == nil {
		c.entry.Organization = scope.Organization
	}
	c.refused = err != nil
	return scope, err
}

// webhookName returns the webhook of the path, which names it by its id or by a display name that only one has.
func (c *call) webhookName() (deployments.WebhookName, error) {
	scope, err := c.webhookScope()
	n := deployments.WebhookName{Scope: scope, Name: c.PathValue("webhook")}
	c.entry.Subject = "name=" + clean(n.Name)
	if err != nil || n.Name == "" {
		return n, err
	}
	hooks, err := c.edge.Service.Webhooks(c.Context(), scope)
	if err != nil {
		return n, err
	}
	var called []string
	for _, w := range hooks {
		if w.Name.Name == n.Name {
			return n, nil
		}
		if w.Title == n.Name {
			called = append(called, w.Name.Name)
		}
	}
	switch {
	case len(called) > 1:
		return n, deployments.Errorf(deployments.CodeInvalid, "%s has several webhooks called %q: name one by its id, %s",
			scope, clean(n.Name), strings.Join(called, " or "))
	case len(called) == 1:
		n.Name = called[0]
		c.entry.Subject = "name=" + clean(n.Name)
	}
	return n, nil
}

// removeSecret is what the CLI sends in the place of a secret to have it removed.
const removeSecret = "__remove-secret"

// putWebhook creates a webhook, or changes the one of the path.
func putWebhook(c *call) (any, error) {
	n, err := c.webhookName()
	if err != nil {
		return nil, err
	}
	r := apitype.Webhook{Active: true}
	if err := c.parse(&r); err != nil {
		return nil, err
	}
	w := deployments.Webhook{Name: n, Title: r.DisplayName, URL: r.PayloadURL, Format: deployments.WebhookRaw,
		Events: r.Filters, Groups: r.Groups, Paused: !r.Active, Secret: r.Secret, HasSecret: r.Secret != removeSecret}
	if !w.HasSecret {
		w.Secret = ""
	}
	if r.Format != nil && *r.Format != "" {
		w.Format = deployments.WebhookFormat(*r.Format)
	}
	if w.Format == "pulumi_deployments" {
		return nil, deployments.Errorf(deployments.CodeInvalid, "deployctl has no webhooks that start deployments: use "+
			"the format raw, slack or ms_teams")
	}
	if w, err = c.edge.Service.PutWebhook(c.Context(), w); err != nil {
		return nil, err
	}
	c.entry.Subject = "name=" + w.Name.Name
	return fromWebhook(w), nil
}

// fromWebhook describes a webhook; its secret stays here.
func fromWebhook(w deployments.Webhook) apitype.Webhook {
	format := string(w.Format)
	answer := apitype.Webhook{OrganizationName: w.Name.Scope.Organization, Name: w.Name.Name, DisplayName: w.Title,
		PayloadURL: w.URL, Active: !w.Paused, Format: &format, Filters: w.Events, Groups: w.Groups,
		HasSecret: w.HasSecret}
	if w.Name.Scope.OfStack() {
		answer.ProjectName, answer.StackName = &w.Name.Scope.Project, &w.Name.Scope.Stack
	}
	return answer
}

func listWebhooks(c *call) (any, error) {
	scope, err := c.webhookScope()
	if err != nil {
		return nil, err
	}
	hooks, err := c.edge.Service.Webhooks(c.Context(), scope)
	if err != nil {
		return nil, err
	}
	answer := []apitype.Webhook{}
	for _, w := range hooks {
		answer = append(answer, fromWebhook(w))
	}
	return answer, nil
}

func getWebhook(c *call) (any, error) {
	n, err := c.webhookName()
	if err != nil {
		return nil, err
	}
	hooks, err := c.edge.Service.Webhooks(c.Context(), n.Scope)
	if err != nil {
		return nil, err
	}
	for _, w := range hooks {
		if w.Name.Name == n.Name {
			return fromWebhook(w), nil
		}
	}
	return nil, deployments.Errorf(deployments.CodeNotFound, "%s has no webhook %s", n.Scope, clean(n.Name))
}

func removeWebhook(c *call) (any, error) {
	n, err := c.webhookName()
	if err != nil {
		return nil, err
	}
	return nil, c.edge.Service.RemoveWebhook(c.Context(), n)
}

func pingWebhook(c *call) (any, error) { return c.sendWebhook("") }

func redeliverWebhook(c *call) (any, error) { return c.sendWebhook(c.PathValue("event")) }

func (c *call) sendWebhook(event string) (any, error) {
	n, err := c.webhookName()
	if err != nil {
		return nil, err
	}
	d, err := c.edge.Service.SendWebhook(c.Context(), n, event)
	if err != nil {
		return nil, err
	}
	return fromDelivery(d), nil
}

func listDeliveries(c *call) (any, error) {
	n, err := c.webhookName()
	if err != nil {
		return nil, err
	}
	list, err := c.edge.Service.WebhookDeliveries(c.Context(), n)
	if err != nil {
		return nil, err
	}
	answer := []apitype.WebhookDelivery{}
	for _, d := range list {
		answer = append(answer, fromDelivery(d))
	}
	return answer, nil
}

// fromDelivery describes a delivery. What kept it from an answer stands in the place of one.
func fromDelivery(d deployments.WebhookDelivery) apitype.WebhookDelivery {
	answer := apitype.WebhookDelivery{ID: d.ID, Kind: d.Kind, Payload: d.Payload, Timestamp: d.Sent.Unix(),
		Duration: int(d.Took.Milliseconds()), RequestURL: d.URL, RequestHeaders: d.Headers, ResponseCode: d.Status,
		ResponseHeaders: d.Answered, ResponseBody: d.Answer}
	if d.Status == 0 {
		answer.ResponseBody = d.Error
	}
	return answer
}
