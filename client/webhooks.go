package client

import (
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// PutWebhook creates or changes a webhook.
func (c *Client) PutWebhook(ctx context.Context, w deployments.Webhook) (deployments.Webhook, error) {
	m, err := once(ctx, c, c.webhooks.PutWebhook, &api.PutWebhookRequest{Webhook: wire.FromWebhook(w)})
	return wire.ToWebhook(m.GetWebhook()), err
}

// Webhooks lists the webhooks of a scope.
func (c *Client) Webhooks(ctx context.Context, s deployments.WebhookScope) ([]deployments.Webhook, error) {
	m, err := repeat(ctx, c, c.webhooks.ListWebhooks, &api.ListWebhooksRequest{Scope: wire.FromScope(s)})
	return wire.ToWebhooks(m.GetWebhooks()), err
}

// RemoveWebhook removes a webhook.
func (c *Client) RemoveWebhook(ctx context.Context, n deployments.WebhookName) error {
	_, err := once(ctx, c, c.webhooks.RemoveWebhook, &api.RemoveWebhookRequest{Name: wire.FromWebhookName(n)})
	return err
}

// SendWebhook sends a ping, or an event once more.
func (c *Client) SendWebhook(
	ctx context.Context, n deployments.WebhookName, id string,
) (deployments.WebhookDelivery, error) {
	m, err := once(ctx, c, c.webhooks.SendWebhook, &api.SendWebhookRequest{Name: wire.FromWebhookName(n), Event: id})
	return wire.ToDelivery(m.GetDelivery()), err
}

// WebhookDeliveries lists the last deliveries of a webhook.
func (c *Client) WebhookDeliveries(
	ctx context.Context, n deployments.WebhookName,
) ([]deployments.WebhookDelivery, error) {
	m, err := repeat(ctx, c, c.webhooks.WebhookDeliveries, &api.WebhookDeliveriesRequest{Name: wire.FromWebhookName(n)})
	return wire.ToDeliveries(m.GetDeliveries()), err
}
