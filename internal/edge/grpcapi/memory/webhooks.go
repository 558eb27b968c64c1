package memory

import (
	"context"
	"slices"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
)

// PutWebhook keeps a webhook, which is never sent anything.
func (s *Service) PutWebhook(_ context.Context, w deployments.Webhook) (deployments.Webhook, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Name.Name == "" {
		w.Name.Name, w.Created = strconv.Itoa(len(s.webhooks)+1), begun
	} else if _, ok := s.webhooks[w.Name]; !ok {
		return w, noWebhook(w.Name)
	}
	w.HasSecret, w.Secret = w.HasSecret || w.Secret != "", ""
	s.webhooks[w.Name] = w
	return w, nil
}

func noWebhook(n deployments.WebhookName) error {
	return deployments.Errorf(deployments.CodeNotFound, "%s has no webhook %s", n.Scope, n.Name)
}

// Webhooks lists the webhooks of a scope.
func (s *Service) Webhooks(_ context.Context, scope deployments.WebhookScope) ([]deployments.Webhook, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []deployments.Webhook
	for n, w := range s.webhooks {
		if n.Scope == scope {
			list = append(list, w)
		}
	}
	slices.SortFunc(list, func(a, b deployments.Webhook) int { return a.Created.Compare(b.Created) })
	return list, nil
}

// RemoveWebhook removes a webhook.
func (s *Service) RemoveWebhook(_ context.Context, n deployments.WebhookName) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.webhooks[n]; !ok {
		return noWebhook(n)
	}
	delete(s.webhooks, n)
	return nil
}

// SendWebhook says that an event was accepted.
func (s *Service) SendWebhook(
	_ context.Context, n deployments.WebhookName, id string,
) (deployments.WebhookDelivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.webhooks[n]
	if !ok {
		return deployments.WebhookDelivery{}, noWebhook(n)
	}
	return deployments.WebhookDelivery{ID: id, Event: deployments.EventOfPing, URL: w.URL, Sent: begun, Status: 200}, nil
}

// WebhookDeliveries lists none.
func (s *Service) WebhookDeliveries(
	_ context.Context, n deployments.WebhookName,
) ([]deployments.WebhookDelivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.webhooks[n]; !ok {
		return nil, noWebhook(n)
	}
	return nil, nil
}
