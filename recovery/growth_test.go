package recovery

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
)

// visible is a Temporal server of which all workflows are of live builds. It counts what it is asked.
type visible struct {
	frontend
	described atomic.Int32
	query     atomic.Value
	old       bool // it does not know versions as an attribute
}

func (v *visible) ListWorkflowExecutions(
	_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	v.query.Store(r.GetQuery())
	if v.old && strings.Contains(r.GetQuery(), "TemporalWorkerDeploymentVersion") {
		return nil, serviceerror.ToStatus(serviceerror.NewInvalidArgument("invalid search attribute")).Err()
	}
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}

func (v *visible) DescribeWorkflowExecution(
	context.Context, *workflowservice.DescribeWorkflowExecutionRequest,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	v.described.Add(1)
	return nil, serviceerror.ToStatus(serviceerror.NewNotFound("no such workflow")).Err()
}

func TestNoUpdateOfALiveBuildIsLookedAt(t *testing.T) {
	server := &visible{}
	must(t, recoveryOn(t, server, nil).migrateStranded(t.Context(), Deployment{Name: "deployctl", Queue: "ours"},
		map[string]bool{"2": true, "1": true}))
	query := server.query.Load().(string)
	if server.described.Load() != 0 || !strings.HasSuffix(query, "TaskQueue = 'ours' AND "+
		"TemporalWorkerDeploymentVersion NOT IN ('deployctl:1', 'deployctl:2')") {
		t.Errorf("%d descriptions after %s", server.described.Load(), query)
	}
}

func TestAServerWithoutTheAttributeIsAskedForAllUpdates(t *testing.T) {
	server := &visible{old: true}
	ours := Deployment{Name: "deployctl", Queue: "ours"}
	must(t, recoveryOn(t, server, nil).migrateStranded(t.Context(), ours, map[string]bool{"1": true}))
	if query := server.query.Load().(string); query != runningUpdates+" AND TaskQueue = 'ours'" {
		t.Errorf("it was asked for %s", query)
	}
}
