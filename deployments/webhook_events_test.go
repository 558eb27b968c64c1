package deployments

import "testing"

func TestEachAttemptThatAPersonAsksForHasAWorkflowOfItsOwn(t *testing.T) {
	told := NotifyInput{Event: WebhookEvent{ID: "e", Stack: StackName{"acme", "shop", "dev"}}}
	if got := WebhookWorkflowID(told); got != "webhooks/acme/shop/dev/e" {
		t.Errorf("the event is told by %s", got)
	}
	first, second := told, told
	first.Once, first.Attempt, second.Once, second.Attempt = true, "1", true, "2"
	if a, b := WebhookWorkflowID(first), WebhookWorkflowID(second); a == b || a == WebhookWorkflowID(told) {
		t.Errorf("two attempts are %s and %s", a, b)
	}
}
