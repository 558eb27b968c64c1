package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/workflows"
)

// PutWebhook creates a webhook, or changes the one of its name.
func (s *Service) PutWebhook(ctx context.Context, w deployments.Webhook) (deployments.Webhook, error) {
	if err := w.Validate(); err != nil {
		return w, err
	}
	if err := s.findScope(ctx, w.Name.Scope); err != nil {
		return w, err
	}
	// What runs again after another write begins with the same: w is changed before it or after it.
	added := w.Name.Name == ""
	if added {
		w.Name.Name, w.Created, w.HasSecret = randomID(4), time.Now().UTC(), w.Secret != ""
	}
	put := w
	scope := w.Name.Scope
	err := s.store.Jobs.ChangeWebhooks(ctx, scope, func(hooks []deployments.Webhook) ([]deployments.Webhook, error) {
		put = w
		if added {
			if len(hooks) >= deployments.MaxWebhooks {
				return nil, deployments.Errorf(deployments.CodeConflict, "%s has %d webhooks already: remove one",
					w.Name.Scope, len(hooks))
			}
			return append(hooks, put), nil
		}
		i := slices.IndexFunc(hooks, func(other deployments.Webhook) bool { return other.Name.Name == w.Name.Name })
		if i < 0 {
			return nil, noWebhook(w.Name)
		}
		if put.Secret == "" && put.HasSecret {
			put.Secret = hooks[i].Secret
		}
		put.HasSecret, put.Created = put.Secret != "", hooks[i].Created
		hooks[i] = put
		return hooks, nil
	})
	put.Secret = ""
	return put, err
}

// randomID returns a random id of so many bytes, as hexadecimal digits.
func randomID(size int) string {
	id := make([]byte, size)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// findScope reports, as CodeNotFound, that the stack of a scope does not exist.
func (s *Service) findScope(ctx context.Context, scope deployments.WebhookScope) error {
	if err := scope.Validate(); err != nil || !scope.OfStack() {
		return err
	}
	_, err := s.Head(ctx, scope.StackName())
	return err
}

// Webhooks lists the webhooks of a scope, without their secrets.
func (s *Service) Webhooks(ctx context.Context, scope deployments.WebhookScope) ([]deployments.Webhook, error) {
	if err := s.findScope(ctx, scope); err != nil {
		return nil, err
	}
	hooks, err := s.store.Jobs.Webhooks(ctx, scope)
	for i := range hooks {
		hooks[i].Secret = ""
	}
	return hooks, err
}

// webhook finds a webhook.
func (s *Service) webhook(ctx context.Context, n deployments.WebhookName) error {
	if err := n.Validate(); err != nil {
		return err
	}
	if err := s.findScope(ctx, n.Scope); err != nil {
		return err
	}
	_, err := s.store.Jobs.Webhook(ctx, n)
	return err
}

// noWebhook returns the error about a webhook that does not exist.
func noWebhook(n deployments.WebhookName) error {
	return deployments.Errorf(deployments.CodeNotFound, "%s has no webhook %s; `deployctl webhook ls` lists those it has",
		n.Scope, n.Name)
}

// RemoveWebhook removes a webhook with its log.
func (s *Service) RemoveWebhook(ctx context.Context, n deployments.WebhookName) error {
	if err := s.webhook(ctx, n); err != nil {
		return err
	}
	if err := s.store.Jobs.ChangeWebhooks(ctx, n.Scope, func(hooks []deployments.Webhook) ([]deployments.Webhook, error) {
		return slices.DeleteFunc(hooks, func(w deployments.Webhook) bool { return w.Name.Name == n.Name }), nil
	}); err != nil {
		return err
	}
	return s.store.Jobs.RemoveDeliveries(ctx, n)
}

// WebhookDeliveries lists the last deliveries of a webhook.
func (s *Service) WebhookDeliveries(
	ctx context.Context, n deployments.WebhookName,
) ([]deployments.WebhookDelivery, error) {
	if err := s.webhook(ctx, n); err != nil {
		return nil, err
	}
	return s.store.Jobs.Deliveries(ctx, n, "")
}

// SendWebhook sends a ping, or an event of the log once more. A worker makes the attempt: only workers connect to
// servers that users name.
func (s *Service) SendWebhook(
	ctx context.Context, n deployments.WebhookName, id string,
) (deployments.WebhookDelivery, error) {
	none := deployments.WebhookDelivery{}
	if err := s.webhook(ctx, n); err != nil {
		return none, err
	}
	in := deployments.NotifyInput{Webhooks: []deployments.WebhookName{n}, Once: true, Attempt: randomID(16),
		Event: deployments.WebhookEvent{ID: randomID(16), Name: deployments.EventOfPing, Kind: deployments.EventOfPing,
			Stack: n.Scope.StackName(), At: time.Now().UTC()}}
	if id != "" {
		logged, err := s.store.Jobs.Deliveries(ctx, n, id)
		if err != nil {
			return none, err
		}
		if len(logged) == 0 {
			return none, deployments.Errorf(deployments.CodeNotFound, "the log of the webhook %s has no event %s", n.Name, id)
		}
		d := logged[0]
		in.Event.ID, in.Event.Name, in.Event.Kind, in.Event.At, in.Payload = d.ID, d.Event, d.Kind, d.At, d.Payload
	}
	run, err := s.notify(ctx, in, enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE)
	if err != nil {
		return none, failure("send the event", err)
	}
	attended, stop := s.whileServed(ctx, run.GetID(), noAnswerAfter)
	defer stop()
	var out deployments.NotifyOutput
	if err := caused(attended, run.Get(attended, &out)); err != nil {
		return none, failure("send the event", err)
	}
	if len(out.Deliveries) == 0 || out.Deliveries[0].ID == "" {
		return none, noWebhook(n) // it was removed meanwhile
	}
	return out.Deliveries[0], nil
}

// notify starts the workflow that sends an event.
func (s *Service) notify(
	ctx context.Context, in deployments.NotifyInput, reuse enums.WorkflowIdReusePolicy,
) (client.WorkflowRun, error) {
	e := in.Event
	in.Asked = time.Now().UTC()
	queue, err := s.Organizations.TaskQueue(ctx, e.Stack.Organization)
	if err != nil {
		return nil, err
	}
	return s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: deployments.WebhookWorkflowID(in), TaskQueue: queue, WorkflowIDReusePolicy: reuse,
		TypedSearchAttributes: workflows.StackAttributes(e.Stack), StaticSummary: "tell webhooks: " + e.Name,
		Priority: workflows.Priority(e.Stack.Organization, true),
	}, deployments.WorkflowNotify, in)
}

// Notify tells an event to the webhooks that want it. Once it returns, a workflow sends the event, whatever happens to
// this process; told twice, an event is sent once. Webhooks that cannot be read are told nothing: they must not keep an
// update from ending.
func (s *Service) Notify(ctx context.Context, e deployments.WebhookEvent) error {
	in := deployments.NotifyInput{Event: e}
	var err error
	if in.Webhooks, err = s.wanting(ctx, e); err != nil || len(in.Webhooks) == 0 {
		return err
	}
	_, err = s.notify(ctx, in, enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
	if started := (*serviceerror.WorkflowExecutionAlreadyStarted)(nil); errors.As(err, &started) {
		return nil
	}
	return failure("tell the webhooks", err)
}

// wanting returns the webhooks of the stack and of its organization that want an event.
func (s *Service) wanting(ctx context.Context, e deployments.WebhookEvent) ([]deployments.WebhookName, error) {
	scopes := []deployments.WebhookScope{{Organization: e.Stack.Organization}, deployments.ScopeOf(e.Stack)}
	if e.Kind == deployments.EventOfStack {
		scopes = scopes[:1] // a stack does not hear of itself
	}
	found := make([][]deployments.Webhook, len(scopes))
	reading, ctx := panics.NewGroup(ctx, "reading webhooks")
	for i, scope := range scopes {
		reading.Go(func() (err error) {
			found[i], err = s.store.Jobs.Webhooks(ctx, scope)
			if code := deployments.CodeOf(err); err != nil && (code == deployments.CodeFormat ||
				code == deployments.CodeNotFound || code == deployments.CodeInvalid) {
				return nil
			}
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	var names []deployments.WebhookName
	for _, w := range slices.Concat(found...) {
		if w.Wants(e.Name) {
			names = append(names, w.Name)
		}
	}
	return names, nil
}

// UpdateEnded tells webhooks that an update, or a preview, has ended. A drift check is told by its report, and a
// migrated update by the one that continues it.
func (s *Service) UpdateEnded(ctx context.Context, info deployments.UpdateInfo, scheduled bool) error {
	check := scheduled && info.DryRun && info.Kind == engine.KindRefresh
	if check || info.Next != "" || info.Ended.IsZero() {
		return nil
	}
	return s.Notify(ctx, deployments.EventOf(info))
}

// TellDeployment tells webhooks what a deployment has come to. Told twice, it is sent once.
func (s *Service) TellDeployment(ctx context.Context, d deployments.Deployment) error {
	e, happens := deployments.EventOfDeployments(d)
	if !happens {
		return nil
	}
	return s.Notify(ctx, e)
}

// tellStack tells the organization's webhooks that a stack was created or removed. A process that dies in between tells
// nobody, and the stack does not wait for a part of the service that does not answer.
func (s *Service) tellStack(ctx context.Context, name deployments.StackName, event string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noAnswerAfter)
	defer cancel()
	_ = s.Notify(ctx, deployments.EventOfStacks(name, event, "", time.Now().UTC()))
}

// CreateStack creates a stack.
func (s *Service) CreateStack(ctx context.Context, name deployments.StackName, tags map[string]string) error {
	if err := s.store.CreateStack(ctx, name, tags); err != nil {
		return err
	}
	s.tellStack(ctx, name, deployments.EventStackCreated)
	return nil
}
