package grpcapi

import (
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// webhooks serves those of a stack to its deployers, and those of an organization, which hear of all its stacks, to its
// admins.
type webhooks struct {
	api.UnsafeWebhooksServer // a method without a handler does not compile
	service                  deployments.Webhooks
}

func allowed(ctx context.Context, scope deployments.WebhookScope) error {
	return AllowWebhooks(callerOf(ctx), scope)
}

// AllowWebhooks reports why a caller may not see and change the webhooks of a scope, which the rules of their methods
// do not look at: CodeForbidden, or CodeNotFound for a stack that the caller may not see.
func AllowWebhooks(caller deployments.Caller, scope deployments.WebhookScope) error {
	if err := scope.Validate(); err != nil {
		return err
	}
	if scope.OfStack() {
		return allowOn(caller, "Webhooks", deployer, scope.StackName(), false)
	}
	if !caller.Administers(deployments.Grant{Role: admin, Organization: scope.Organization}) {
		return deployments.Errorf(deployments.CodeForbidden, "webhooks of an organization need the role admin in %s, "+
			"which this token does not have", scope.Organization)
	}
	return nil
}

func (s *webhooks) PutWebhook(ctx context.Context, m *api.PutWebhookRequest) (*api.PutWebhookResponse, error) {
	w := wire.ToWebhook(m.GetWebhook())
	if err := allowed(ctx, w.Name.Scope); err != nil {
		return nil, err
	}
	w, err := s.service.PutWebhook(ctx, w)
	return &api.PutWebhookResponse{Webhook: wire.FromWebhook(w)}, err
}

func (s *webhooks) ListWebhooks(ctx context.Context, m *api.ListWebhooksRequest) (*api.ListWebhooksResponse, error) {
	scope := wire.ToScope(m.GetScope())
	if err := allowed(ctx, scope); err != nil {
		return nil, err
	}
	list, err := s.service.Webhooks(ctx, scope)
	return &api.ListWebhooksResponse{Webhooks: wire.FromWebhooks(list)}, err
}

func (s *webhooks) RemoveWebhook(
	ctx context.Context, m *api.RemoveWebhookRequest,
) (*api.RemoveWebhookResponse, error) {
	n := wire.ToWebhookName(m.GetName())
	if err := allowed(ctx, n.Scope); err != nil {
		return nil, err
	}
	return &api.RemoveWebhookResponse{}, s.service.RemoveWebhook(ctx, n)
}

func (s *webhooks) SendWebhook(ctx context.Context, m *api.SendWebhookRequest) (*api.SendWebhookResponse, error) {
	n := wire.ToWebhookName(m.GetName())
	if err := allowed(ctx, n.Scope); err != nil {
		return nil, err
	}
	d, err := s.service.SendWebhook(ctx, n, m.GetEvent())
	return &api.SendWebhookResponse{Delivery: wire.FromDelivery(d)}, err
}

func (s *webhooks) WebhookDeliveries(
	ctx context.Context, m *api.WebhookDeliveriesRequest,
) (*api.WebhookDeliveriesResponse, error) {
	n := wire.ToWebhookName(m.GetName())
	if err := allowed(ctx, n.Scope); err != nil {
		return nil, err
	}
	list, err := s.service.WebhookDeliveries(ctx, n)
	return &api.WebhookDeliveriesResponse{Deliveries: wire.FromDeliveries(list)}, err
}

// scopeOf returns the scope of a request about webhooks; nil for another one.
func scopeOf(m any) *api.WebhookScope {
	switch m := m.(type) {
	case *api.PutWebhookRequest:
		return m.GetWebhook().GetName().GetScope()
	case interface{ GetScope() *api.WebhookScope }:
		return m.GetScope()
	case interface{ GetName() *api.WebhookName }:
		return m.GetName().GetScope()
	}
	return nil
}
