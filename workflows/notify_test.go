package workflows

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/deployctl/deployctl/deployments"
)

// mail fakes the activity that sends events: what a webhook does with its attempts.
type mail struct {
	env      *testsuite.TestWorkflowEnvironment
	mu       sync.Mutex // the environment runs activities in parallel
	attempts map[string]int
	accepts  map[string]int // from which attempt on; 0: never
	refuses  map[string]bool
}

func newMail() *mail {
	m := &mail{env: newEnvironment(), attempts: map[string]int{}, accepts: map[string]int{},
		refuses: map[string]bool{}}
	New(Settings{}).Register(m.env)
	m.env.RegisterActivity(m.DeliverEvent)
	return m
}

func (m *mail) DeliverEvent(_ context.Context, in deployments.DeliverInput) (deployments.WebhookDelivery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := in.Webhook.Name
	m.attempts[name]++
	d := deployments.WebhookDelivery{ID: in.Event.ID, Attempt: m.attempts[name], Error: "not accepted"}
	switch from := m.accepts[name]; {
	case m.refuses[name]:
		return d, temporal.NewNonRetryableApplicationError("no public address", string(deployments.CodeUnavailable), nil)
	case from > 0 && d.Attempt >= from:
		d.Error = ""
		return d, nil
	case in.Once:
		return d, nil
	}
	return d, errors.New("no answer")
}

// tell tells webhooks an event, and returns how long that took by the workflow's clock.
func (m *mail) tell(once bool, names ...string) (out deployments.NotifyOutput, took time.Duration, err error) {
	in := deployments.NotifyInput{Event: deployments.WebhookEvent{ID: "e", Stack: theStack}, Once: once}
	for _, name := range names {
		in.Webhooks = append(in.Webhooks, deployments.WebhookName{Scope: deployments.ScopeOf(theStack), Name: name})
	}
	begun := m.env.Now()
	m.env.ExecuteWorkflow(deployments.WorkflowNotify, in)
	if err := m.env.GetWorkflowError(); err != nil {
		return out, m.env.Now().Sub(begun), err
	}
	return out, m.env.Now().Sub(begun), m.env.GetWorkflowResult(&out)
}

func TestEachWebhookIsTriedUntilItAcceptsTheEvent(t *testing.T) {
	m := newMail()
	m.accepts["at once"], m.accepts["late"] = 1, 4
	out, _, err := m.tell(false, "late", "at once")
	if err != nil || m.attempts["late"] != 4 || m.attempts["at once"] != 1 || len(out.Deliveries) != 2 ||
		out.Deliveries[0].Attempt != 4 || out.Deliveries[1].Attempt != 1 {
		t.Errorf("after %v attempts it ends with %+v, %v", m.attempts, out, err)
	}
}

func TestAWebhookThatNeverAcceptsIsGivenUpAfterADayAndKeepsNoOtherWaiting(t *testing.T) {
	m := newMail()
	m.accepts["good"], m.refuses["refused"] = 1, true
	_, took, err := m.tell(false, "dead", "refused", "good")
	if err == nil || !strings.Contains(err.Error(), "has not accepted the event") || took > deliverPatience+time.Hour ||
		m.attempts["dead"] < 10 || m.attempts["refused"] != 1 || m.attempts["good"] != 1 {
		t.Errorf("after %s and %v attempts it ends with %v", took, m.attempts, err)
	}
}

func TestAnEventThatIsSentOnceComesToWhatTheAttemptCameTo(t *testing.T) {
	m := newMail()
	out, _, err := m.tell(true, "dead")
	if err != nil || m.attempts["dead"] != 1 || len(out.Deliveries) != 1 || out.Deliveries[0].Error != "not accepted" {
		t.Errorf("after %v attempts it ends with %+v, %v", m.attempts, out, err)
	}
}
