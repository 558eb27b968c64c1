package scheduled

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// endless is a Temporal whose only workflow runs until it is ended.
type endless struct {
	client.Client
	client.WorkflowRun
	ended  chan struct{}
	waited int
}

func (e *endless) DescribeWorkflowExecution(
	context.Context, string, string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	status := enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	select {
	case <-e.ended:
		status = enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
	default:
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflow.WorkflowExecutionInfo{Status: status}}, nil
}

func (e *endless) GetWorkflow(context.Context, string, string) client.WorkflowRun { return e }

func (e *endless) Get(ctx context.Context, to any) error {
	e.waited++
	select {
	case <-e.ended:
		*to.(*deployments.UpdateInfo) = deployments.UpdateInfo{Status: deployments.StatusSucceeded}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestAnUpdateThatDoesNotEndGivesItsSlotBackAndIsLookedAtWithoutAWait(t *testing.T) {
	temporalServer := &endless{ended: make(chan struct{})}
	a := &Activities{Temporal: temporalServer}
	u := deployments.UpdateName{StackName: deployments.StackName{Organization: "o", Project: "p", Stack: "s"},
		Version: "1"}
	run := func(activity any) error {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.SetTestTimeout(waittest.Patience)
		env.RegisterActivity(activity)
		_, err := env.ExecuteActivity(activity, u)
		return err
	}
	patience := time.Millisecond
	follow := func(ctx context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error) {
		return Follow(ctx, a, u, patience)
	}
	var postponed *temporal.ApplicationError
	if err := run(follow); !errors.As(err, &postponed) || postponed.Type() != deployments.ErrorPostponed ||
		postponed.NonRetryable() || temporalServer.waited != 1 {
		t.Errorf("it is waited for %d times, and ends with %v", temporalServer.waited, err)
	}
	look := func(ctx context.Context, u deployments.UpdateName) (bool, error) {
		_, over, err := a.follow(ctx, u, false)
		if over != (temporalServer.waited > 1) {
			t.Errorf("it is over: %v", over)
		}
		return over, err
	}
	if err := run(look); err != nil || temporalServer.waited != 1 {
		t.Errorf("a look waits %d times: %v", temporalServer.waited-1, err)
	}
	close(temporalServer.ended)
	patience = waittest.Patience // else a slow machine gives the slot back before the end is seen
	for _, found := range []any{look, follow} {
		if err := run(found); err != nil {
			t.Errorf("one that has ended: %v", err)
		}
	}
}

func TestARunOfAScheduleWaitsForTheEndOfMaintenance(t *testing.T) {
	store, err := statestore.New(storetest.NewContended(&bucket.Memory{}),
		statestore.Options{Master: make([]byte, 32)})
	if err == nil {
		err = store.Organizations.SetMode(t.Context(), deployments.Mode{Kind: deployments.ModeMaintenance,
			Reason: "Temporal is upgraded", Until: time.Now().Add(time.Hour)})
	}
	if err != nil {
		t.Fatal(err)
	}
	a := &Activities{Store: store}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(waittest.Patience)
	env.RegisterActivity(a.SubmitUpdate)
	_, err = env.ExecuteActivity(a.SubmitUpdate, deployments.SubmitInput{})
	var waits *temporal.ApplicationError
	if !errors.As(err, &waits) || waits.Type() != deployments.ErrorPostponed || waits.NonRetryable() ||
		!strings.Contains(waits.Message(), "Temporal is upgraded") {
		t.Errorf("it ends with %v", err)
	}
}
