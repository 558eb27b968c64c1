package jobs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// Webhooks are one object for each scope, and their deliveries one object each, in a folder for each webhook. Those of
// a stack are in its folder, and follow a rename.
const (
	webhookObject = "webhooks"
	sentFolder    = "webhook-deliveries"
)

// webhookKey returns the key of a scope's object.
func webhookKey(scope deployments.WebhookScope, segments ...string) string {
	if scope.OfStack() {
		return stackobjects.Key(scope.StackName(), segments...)
	}
	return bucket.Key(append([]string{"hooks", scope.Organization}, segments...)...)
}

// Webhooks returns the webhooks of a scope with their secrets, the oldest first.
func (s *Store) Webhooks(ctx context.Context, scope deployments.WebhookScope) ([]deployments.Webhook, error) {
	hooks, _, err := s.getWebhooks(ctx, scope)
	return hooks, err
}

// Webhook returns a webhook with its secret; CodeNotFound when there is none.
func (s *Store) Webhook(ctx context.Context, n deployments.WebhookName) (deployments.Webhook, error) {
	hooks, err := s.Webhooks(ctx, n.Scope)
	if err != nil {
		return deployments.Webhook{}, err
	}
	for _, w := range hooks {
		if w.Name.Name == n.Name {
			return w, nil
		}
	}
	return deployments.Webhook{}, NoWebhook(n)
}

// NoWebhook returns the error about a webhook that does not exist.
func NoWebhook(n deployments.WebhookName) error {
	return deployments.Errorf(deployments.CodeNotFound, "%s has no webhook %s; `deployctl webhook ls` lists those it has",
		n.Scope, n.Name)
}

// ChangeWebhooks changes the webhooks of a scope by compare-and-swap.
func (s *Store) ChangeWebhooks(
	ctx context.Context, scope deployments.WebhookScope,
	change func([]deployments.Webhook) ([]deployments.Webhook, error),
) error {
	key := webhookKey(scope, webhookObject)
	for {
		hooks, tag, err := s.getWebhooks(ctx, scope)
		if err != nil {
			return err
		}
		if hooks, err = change(hooks); err != nil {
			return err
		}
		err = s.putWebhookObject(ctx, scope, key, hooks, bucket.Condition{Tag: tag, Absent: tag == ""})
		if !errors.Is(err, bucket.ErrChanged) {
			return err
		}
	}
}

func (s *Store) putWebhookObject(
	ctx context.Context, scope deployments.WebhookScope, key string, v any, c bucket.Condition,
) error {
	if scope.OfStack() {
		return s.stacks.PutIf(ctx, scope.StackName(), key, v, c)
	}
	return s.sealed.PutJSON(ctx, key, v, c)
}

// getWebhooks also returns the tag of the object; empty when there is none.
func (s *Store) getWebhooks(
	ctx context.Context, scope deployments.WebhookScope,
) (hooks []deployments.Webhook, tag string, err error) {
	if err := scope.Validate(); err != nil {
		return nil, "", err
	}
	tag, err = s.getWebhookObject(ctx, scope, webhookKey(scope, webhookObject), &hooks)
	if errors.Is(err, bucket.ErrAbsent) {
		return nil, "", nil
	}
	for i := range hooks {
		hooks[i].Name.Scope = scope // the stack may have been renamed
	}
	return hooks, tag, err
}

func (s *Store) getWebhookObject(
	ctx context.Context, scope deployments.WebhookScope, key string, v any,
) (tag string, err error) {
	if scope.OfStack() {
		return s.stacks.GetJSON(ctx, scope.StackName(), key, v)
	}
	return s.sealed.GetJSON(ctx, key, v)
}

// sentKey returns the key of the delivery of an event; the newest event sorts first.
func sentKey(n deployments.WebhookName, event string, at time.Time) string {
	return webhookKey(n.Scope, sentFolder, n.Name, fmt.Sprintf("%019d-%s", math.MaxInt64-at.UnixNano(), event))
}

// Delivery returns the last attempt to send an event; the zero delivery when there was none, or it is no longer kept.
func (s *Store) Delivery(
	ctx context.Context, n deployments.WebhookName, e deployments.WebhookEvent,
) (d deployments.WebhookDelivery, err error) {
	_, err = s.getWebhookObject(ctx, n.Scope, sentKey(n, e.ID, e.At), &d)
	if errors.Is(err, bucket.ErrAbsent) {
		err = nil
	}
	return d, err
}

// PutDelivery stores a delivery in the place of an earlier attempt of the same event, and removes the oldest ones of
// the webhook if there are too many.
func (s *Store) PutDelivery(ctx context.Context, n deployments.WebhookName, d deployments.WebhookDelivery) error {
	folder := webhookKey(n.Scope, sentFolder, n.Name, "")
	if err := s.putWebhookObject(ctx, n.Scope, sentKey(n, d.ID, d.At), d, bucket.Condition{}); err != nil {
		return err
	}
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: folder})
	if err != nil || len(l.Keys) <= deployments.WebhookLogEntries {
		return bucket.Failed(err, "list "+folder)
	}
	return bucket.Each(l.Keys[deployments.WebhookLogEntries:], func(key string) error {
		return bucket.Failed(s.sealed.Objects.Delete(ctx, key), "delete "+key)
	})
}

// Deliveries returns the deliveries of a webhook, the latest event first. With an id, only that of the event.
func (s *Store) Deliveries(
	ctx context.Context, n deployments.WebhookName, id string,
) ([]deployments.WebhookDelivery, error) {
	folder := webhookKey(n.Scope, sentFolder, n.Name, "")
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: folder, Limit: deployments.WebhookLogEntries})
	if err != nil {
		return nil, bucket.Failed(err, "list "+folder)
	}
	var keys []string
	for _, key := range l.Keys {
		if id == "" || strings.HasSuffix(key, "-"+id) {
			keys = append(keys, key)
		}
	}
	found := make([]deployments.WebhookDelivery, len(keys))
	index := make(map[string]int, len(keys))
	for i, key := range keys {
		index[key] = i
	}
	err = bucket.Each(keys, func(key string) error {
		_, err := s.getWebhookObject(ctx, n.Scope, key, &found[index[key]])
		return err
	})
	return found, err
}

// RemoveDeliveries removes the log of a webhook.
func (s *Store) RemoveDeliveries(ctx context.Context, n deployments.WebhookName) error {
	return s.sealed.DeleteAll(ctx, webhookKey(n.Scope, sentFolder, n.Name, ""))
}
