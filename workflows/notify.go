package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// Notify tells webhooks an event, each on its own: one that does not accept the event is tried again for a day, and
// keeps the others waiting for nothing. It fails if a webhook never accepted the event.
func (w *Workflows) Notify(
	ctx workflow.Context, in deployments.NotifyInput,
) (out deployments.NotifyOutput, err error) {
	defer panicToError(ctx, &err)
	ctx = withNames(ctx)
	sent := make([]workflow.Future, len(in.Webhooks))
	for i, name := range in.Webhooks {
		sent[i] = execute(onDeliveries(ctx, name.Name, in.Once), deployments.ActivityDeliverEvent,
			deployments.DeliverInput{Event: in.Event, Webhook: name, Once: in.Once, Payload: in.Payload, Asked: in.Asked})
	}
	for _, delivery := range sent {
		var d deployments.WebhookDelivery
		if failed := delivery.Get(ctx, &d); failed != nil {
			err = temporal.NewNonRetryableApplicationError("a webhook has not accepted the event: "+
				clip(messageOf(failed), messageBytes), string(deployments.CodeUnavailable), nil)
		}
		out.Deliveries = append(out.Deliveries, d)
	}
	return out, err
}
