package service

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// idle is a Temporal that knows no update. Waking a stack does what wake does.
type idle struct {
	client.Client
	wake func() error
}

func (i *idle) DescribeWorkflowExecution(
	context.Context, string, string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, serviceerror.NewNotFound("no such workflow")
}

func (i *idle) UpdateWithStartWorkflow(
	context.Context, client.UpdateWithStartWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	return recalled{err: i.wake()}, nil
}

// recalled is the answer of a stack that was asked to recover its update.
type recalled struct {
	client.WorkflowUpdateHandle
	err error
}

func (r recalled) Get(context.Context, any) error { return r.err }

func TestRecoveringIsOverWhenAnImportEndsByItself(t *testing.T) {
	s := newService(t)
	claim, err := s.Claim(t.Context(), statestore.Claimant{Update: deployments.UpdateName{StackName: dev, Version: "1"},
		Writer: "#import-1"})
	must(t, err)
	s.temporal = &idle{s.temporal, func() error {
		return s.Commit(t.Context(), claim, statestore.Written{Version: 1, Digest: "d"})
	}}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	info, err := s.Recover(ctx, dev)
	if err != nil || info.Update.Version != "" {
		t.Errorf("it came to %+v, %v", info, err)
	}
}

func TestWhoRecoversAnUpdateIsToldWhatIsToBeRepairedFirst(t *testing.T) {
	s := newService(t)
	_, err := s.Claim(t.Context(), statestore.Claimant{Update: deployments.UpdateName{StackName: dev, Version: "1"},
		Writer: "w#1"})
	must(t, err)
	s.temporal = &idle{s.temporal, func() error {
		return temporal.NewNonRetryableApplicationError("checkpoints/1 is damaged", string(deployments.CodeFormat), nil)
	}}
	if _, err := s.Recover(t.Context(), dev); deployments.CodeOf(err) != deployments.CodeFormat ||
		err.Error() != "checkpoints/1 is damaged" {
		t.Errorf("it came to %s: %v", deployments.CodeOf(err), err)
	}
}
