package worker

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

func TestAnActivityBeyondTheShareOfItsOrganizationIsPostponedWithoutAnEffect(t *testing.T) {
	s, done := newShares(slog.New(slog.DiscardHandler)), 0
	call := func() error {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment() // its workflow names no organization
		env.SetTestTimeout(waittest.Patience)
		env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{s}})
		env.RegisterActivityWithOptions(func(context.Context) error { done++; return nil },
			activity.RegisterOptions{Name: deployments.ActivityStep})
		_, err := env.ExecuteActivity(deployments.ActivityStep)
		return err
	}
	must(t, call())
	var leave func()
	for range mostOfOrganization {
		var ok bool
		if leave, ok = s.places.Take(""); !ok {
			t.Fatal("an activity that has ended still has its place")
		}
	}
	var postponed *temporal.ApplicationError
	if err := call(); !errors.As(err, &postponed) || postponed.Type() != deployments.ErrorPostponed ||
		postponed.NonRetryable() || postponed.NextRetryDelay() != time.Second || done != 1 {
		t.Errorf("one too many ends with %v after %d calls", err, done)
	}
	others := 0
	for {
		if _, ok := s.places.Take(strconv.Itoa(others % 2)); !ok {
			break
		}
		others++
	}
	leaveAnother, ok := s.places.Take("another")
	if !ok || others+mostOfOrganization != mostActivities ||
		slotsOfQueue < mostActivities+leastOfOrganization {
		t.Errorf("beside %d of one organization and %d of others there is no slot for another one", mostOfOrganization,
			others)
	}
	leaveAnother()
	leave()
	must(t, call())
	if done != 2 || s.places.Held() != mostActivities-1 {
		t.Errorf("%d calls were made; %d places are taken", done, s.places.Held())
	}
}

func TestAWorkflowIsOfTheOrganizationThatItsIDNames(t *testing.T) {
	stack := deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}
	update := deployments.UpdateName{StackName: stack, Version: "7"}
	event := deployments.NotifyInput{Event: deployments.WebhookEvent{ID: "1", Stack: stack}}
	for _, id := range []string{
		deployments.StackWorkflowID(stack), deployments.UpdateWorkflowID(update), deployments.RunWorkflowID(update),
		deployments.DeploymentWorkflowID(deployments.DeploymentName{StackName: stack, Number: 1}),
		deployments.ScheduleID(deployments.ScheduleName{StackName: stack, Name: "nightly"}),
		deployments.WebhookWorkflowID(event),
	} {
		if of := organizationOf(id); of != "acme" {
			t.Errorf("%s is of %q", id, of)
		}
	}
	if organizationOf("another-workflow") != "" {
		t.Error("a workflow of nobody has an organization")
	}
}
