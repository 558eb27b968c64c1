package service

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// idle is a Temporal that knows no update. Waking a stack does what wake does.
type idle struct {
	client.Client
	wake func()
}

func (i *idle) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, serviceerror.NewNotFound("no such workflow")
}

func (i *idle) ExecuteWorkflow(context.Context, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	i.wake()
	return nil, nil
}

func TestRecoveringIsOverWhenAnImportEndsByItself(t *testing.T) {
	s := newService(t)
	claim, err := s.Claim(t.Context(), statestore.Claimant{Update: deployments.UpdateName{StackName: dev, Version: "1"}, Writer: "#import-1"})
	must(t, err)
	s.temporal = &idle{s.temporal, func() {
		must(t, s.Settle(t.Context(), claim, statestore.Written{Version: 1, Digest: "d"}))
	}}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	info, err := s.Recover(ctx, dev)
	if err != nil || info.Update.Version != "" {
		t.Errorf("it came to %+v, %v", info, err)
	}
}
