package deployment

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// away is a Temporal that does not answer.
type away struct{ client.Client }

func (away) DescribeWorkflowExecution(
	context.Context, string, string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, errors.New("it does not answer")
}

// queue is a stack with deployments that wait for their turn.
type queue struct {
	*testing.T
	store *statestore.Store
}

func newQueue(t *testing.T, length int) *queue {
	t.Helper()
	store, err := statestore.New(storetest.NewContended(&bucket.Memory{}),
		statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	must(t, store.CreateStack(t.Context(), dev, nil))
	for range length {
		_, err := store.Jobs.AddDeployment(t.Context(), jobs.Deployment{Deployment: deployments.Deployment{
			Name: deployments.DeploymentName{StackName: dev}, Operation: apitype.Update, Created: time.Now(),
			Status: deployments.DeploymentNotStarted}})
		must(t, err)
	}
	return &queue{t, store}
}

// look has a deployment look for its turn, and returns why it waits and for how long. told is what it has said before.
func (q *queue) look(number int, told string) (why string, pause time.Duration) {
	q.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(waittest.Patience)
	env.RegisterActivity(New(Activities{Temporal: away{}, Store: q.store,
		Service: service.New(nil, q.store, service.Readers{})}))
	if told != "" {
		env.SetHeartbeatDetails(told)
	}
	_, err := env.ExecuteActivity("AwaitTurn", deployments.DeploymentName{StackName: dev, Number: number})
	var waits *temporal.ApplicationError
	if errors.As(err, &waits) && waits.Type() == deployments.ErrorPostponed && !waits.NonRetryable() {
		return waits.Message(), waits.NextRetryDelay()
	}
	must(q.T, err)
	return "", 0
}

// is returns the status of a deployment, and the lines of its log.
func (q *queue) is(number int) (status deployments.DeploymentStatus, lines int) {
	q.Helper()
	name := deployments.DeploymentName{StackName: dev, Number: number}
	d, err := q.store.Jobs.Deployment(q.Context(), name)
	must(q.T, err)
	log, _, err := q.store.Jobs.DeploymentLog(q.Context(), name, "")
	must(q.T, err)
	return d.Status, len(log)
}

func TestADeploymentThatWaitsLooksAgainLaterAndSaysOnceForWhatItWaits(t *testing.T) {
	q := newQueue(t, 2)
	why, pause := q.look(2, "")
	if !strings.Contains(why, "Waiting for deployment-1 ") || pause <= 0 || pause > laterLook {
		t.Errorf("it waits %s: %q", pause, why)
	}
	if status, lines := q.is(2); status != deployments.DeploymentAccepted || lines != 1 {
		t.Errorf("it is %s, with %d lines", status, lines)
	}
	if again, _ := q.look(2, why); again != why {
		t.Errorf("it waits: %q", again)
	}
	if _, lines := q.is(2); lines != 1 {
		t.Errorf("it has said it again: %d lines", lines)
	}
	if why, _ := q.look(1, ""); why != "" {
		t.Errorf("the first waits: %q", why)
	}
	if status, _ := q.is(1); status != deployments.DeploymentRunning {
		t.Errorf("the first is %s", status)
	}
	_, err := q.store.Jobs.ChangeDeployment(t.Context(), deployments.DeploymentName{StackName: dev, Number: 1},
		func(d *jobs.Deployment) error { d.Status = deployments.DeploymentSucceeded; return nil })
	must(t, err)
	if why, _ := q.look(2, why); why != "" {
		t.Errorf("it still waits: %q", why)
	}
}

func TestOneOrganizationLeavesAPlaceForThePreparationOfOthers(t *testing.T) {
	p := New(Activities{}).preparing
	var leave func()
	for range preparationShare {
		var ok bool
		if leave, ok = p.Take("one"); !ok {
			t.Fatal("it does not get its share")
		}
	}
	if _, ok := p.Take("one"); ok {
		t.Error("it gets more than its share")
	}
	if _, ok := p.Take("two"); !ok {
		t.Error("it leaves no place for another one")
	}
	if _, ok := p.Take("three"); ok {
		t.Error("there are more places than there are")
	}
	leave()
	if _, ok := p.Take("three"); !ok {
		t.Error("a place that was given back is not taken")
	}
}

func TestADeploymentIsExecutedByOneRunOfItsWorkflow(t *testing.T) {
	q := newQueue(t, 1)
	name := deployments.DeploymentName{StackName: dev, Number: 1}
	q.look(1, "")
	d, err := q.store.Jobs.ChangeDeployment(t.Context(), name, func(d *jobs.Deployment) error {
		if d.Run == "" {
			t.Error("it does not say which run has begun it")
		}
		d.Run = "the first"
		return nil
	})
	must(t, err)
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(waittest.Patience)
	env.RegisterActivity(New(Activities{Temporal: away{}, Store: q.store,
		Service: service.New(nil, q.store, service.Readers{})}))
	for activity, input := range map[string]any{
		"AwaitTurn": name, "PrepareDeployment": name,
		"SubmitDeployment": deployments.SubmitDeploymentInput{Name: name, Request: deployments.UpdateRequest{Stack: dev}},
		"EndDeployment": deployments.EndDeploymentInput{Name: name, DeploymentOutput: deployments.DeploymentOutput{
			Status: deployments.DeploymentFailed}},
	} {
		if _, err := env.ExecuteActivity(activity, input); err == nil || !strings.Contains(err.Error(), errOver.Error()) {
			t.Errorf("%s of another run: %v", activity, err)
		}
	}
	if now, err := q.store.Jobs.Deployment(t.Context(), name); err != nil || now.Status != d.Status || len(now.Steps) > 0 {
		t.Errorf("it is %+v, %v", now.Deployment, err)
	}
}

func TestADeploymentWaitsForTheEndOfMaintenance(t *testing.T) {
	q := newQueue(t, 1)
	must(t, q.store.Organizations.SetMode(t.Context(), deployments.Mode{Kind: deployments.ModeMaintenance,
		Reason: "Temporal is upgraded", Until: time.Now().Add(time.Hour)}))
	why, pause := q.look(1, "")
	if !strings.Contains(why, "in maintenance until") || !strings.Contains(why, "Temporal is upgraded") || pause <= 0 {
		t.Errorf("it waits %s: %q", pause, why)
	}
	if status, lines := q.is(1); status != deployments.DeploymentAccepted || lines != 1 {
		t.Errorf("it is %s, with %d lines", status, lines)
	}
	must(t, q.store.Organizations.SetMode(t.Context(), deployments.Mode{}))
	if why, _ := q.look(1, why); why != "" {
		t.Errorf("it still waits: %q", why)
	}
}
