package worker

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/statestore"
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

// connectionTo connects to a server, without a store.
func connectionTo(t *testing.T, server workflowservice.WorkflowServiceServer) *Connection {
	t.Helper()
	listener := listen(t)
	serveTemporal(t, listener, server, nil)
	config := Temporal{Address: listener.Addr().String(), Namespace: "ours"}.config(statestore.S3Options{}, ample)
	options, err := config.Temporal.options(config, someKeys(t))
	must(t, err)
	c, err := client.NewLazyClient(options)
	must(t, err)
	t.Cleanup(c.Close)
	return &Connection{Client: c, config: config}
}

func TestNoUpdateOfALiveBuildIsLookedAt(t *testing.T) {
	server := &visible{}
	must(t, connectionTo(t, server).moveStranded(t.Context(), fleet{"deployctl", "ours"},
		map[string]bool{"2": true, "1": true}))
	query := server.query.Load().(string)
	if server.described.Load() != 0 || !strings.HasSuffix(query, "TaskQueue = 'ours' AND "+
		"TemporalWorkerDeploymentVersion NOT IN ('deployctl:1', 'deployctl:2')") {
		t.Errorf("%d descriptions after %s", server.described.Load(), query)
	}
}

func TestAServerWithoutTheAttributeIsAskedForAllUpdates(t *testing.T) {
	server := &visible{old: true}
	must(t, connectionTo(t, server).moveStranded(t.Context(), fleet{"deployctl", "ours"}, map[string]bool{"1": true}))
	if query := server.query.Load().(string); query != runningUpdates+" AND TaskQueue = 'ours'" {
		t.Errorf("it was asked for %s", query)
	}
}
