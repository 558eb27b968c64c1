package deployments

import (
	"strings"
	"testing"
	"time"
)

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

func TestADeploymentHasAnEventForEachStageThatItReaches(t *testing.T) {
	ids := map[string]bool{}
	for status, want := range map[DeploymentStatus]string{
		DeploymentNotStarted: "deployment_queued", DeploymentRunning: "deployment_started",
		DeploymentSucceeded: "deployment_succeeded", DeploymentFailed: "deployment_failed", DeploymentSkipped: "",
	} {
		d := Deployment{Name: DeploymentName{StackName{"acme", "shop", "dev"}, 3}, Status: status, Operation: "update",
			Created: time.Unix(1, 0), Modified: time.Unix(2, 0), Error: strings.Repeat("x", 2*maxEventText)}
		e, happens := EventOfDeployments(d)
		if happens != (want != "") || happens && (e.Name != want || !isWebhookEvent(e.Name) || ids[e.ID] ||
			e.Version != "3" || len(e.Error) > maxEventText+len("…")) {
			t.Errorf("%s: %+v, %v", status, e, happens)
		}
		ids[e.ID] = true
		d.Modified = time.Unix(9, 0) // by a step of it, or by a repeated activity
		if again, _ := EventOfDeployments(d); again.ID != e.ID {
			t.Errorf("%s: it is told twice", status)
		}
	}
	queued := Deployment{Status: DeploymentNotStarted}
	accepted := Deployment{Status: DeploymentAccepted}
	first, _ := EventOfDeployments(queued)
	if second, _ := EventOfDeployments(accepted); first.ID != second.ID {
		t.Errorf("a queued deployment has two events: %+v and %+v", first, second)
	}
}
