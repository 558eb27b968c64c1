package worker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/deployctl/deployctl/deployments"
)

// awaitSetUp waits, within the patience, until another process has set up an empty bucket.
func (c Config) awaitSetUp(ctx context.Context, store *objects) error {
	if c.SetUp {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	for !store.Keys.IsSetUp() {
		select {
		case <-ctx.Done():
			return empty(store)
		case <-time.After(redial):
		}
		if err := store.Check(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// latest returns Temporal's latest workflows of stacks and updates; on task queues that begin with queue, if that is
// not empty.
func (c *Connection) latest(ctx context.Context, queue string) ([]*workflow.WorkflowExecutionInfo, error) {
	query := fmt.Sprintf("WorkflowType IN ('%s', '%s')", deployments.WorkflowStack, deployments.WorkflowUpdate)
	if queue != "" {
		query += fmt.Sprintf(" AND TaskQueue STARTS_WITH '%s'", queue)
	}
	page, err := c.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query,
		PageSize: sampledUpdates})
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeUnavailable,
			"the latest workflows of namespace %s cannot be listed: %s", c.config.Temporal.Namespace, reason(err))
	}
	return page.GetExecutions(), nil
}

// namespaceOwner checks that the namespace's stacks and updates are those of this store, by the store's identity in
// their task queues; a store without an identity knows the names. A namespace without workflows is accepted, and so is
// one in which the latest are of others, if some are of this store: anybody who can use the namespace can start more.
func (c *Connection) namespaceOwner(ctx context.Context) Finding {
	f := Finding{What: "store", Detail: c.Store.Keys.Identity()}
	if !c.Store.Keys.IsSetUp() {
		f.Detail = "an empty bucket: a start sets it up"
	}
	list, err := c.latest(ctx, "")
	if err == nil && c.Store.Keys.Identity() != "" {
		own, failed := c.latest(ctx, c.Store.Organizations.SharedTaskQueue())
		list, err = append(list, own...), failed
	}
	if err != nil {
		f.Err, f.Tolerable = err, c.Store.Keys.IsSetUp()
		return f
	}
	ours, example := 0, ""
	for _, w := range list {
		id := w.GetExecution().GetWorkflowId()
		own, err := c.owns(ctx, w)
		switch {
		case err != nil:
			f.Err, f.Tolerable = err, true
			return f
		case own:
			ours++
		case example == "" && isDeployctls(w.GetTaskQueue()):
			example = id
		}
	}
	// A store without an identity may have forgotten some names.
	if example == "" || ours > 0 && c.Store.Keys.Identity() == "" {
		return f
	}
	f.Tolerable = ours > 0
	f.Err = deployments.Errorf(deployments.CodeInvalid, "Temporal's namespace %s has workflows of another store than "+
		"that in the %s, such as %s: "+
		"set s3.bucket and s3.prefix to those of the service that has begun them, or give this service a namespace "+
		"of its own (temporal.namespace)",
		c.config.Temporal.Namespace, c.s3, example)
	return f
}

// isDeployctls reports whether a queue is named like one of some store's workers: on any other nobody executes
// anything.
func isDeployctls(queue string) bool {
	shared := deployments.SharedOfTaskQueue(queue)
	return shared == deployments.SharedTaskQueue || strings.HasPrefix(shared, deployments.SharedTaskQueue+"-store-")
}

// owns reports whether a workflow of a stack or an update belongs to this store.
func (c *Connection) owns(ctx context.Context, w *workflow.WorkflowExecutionInfo) (bool, error) {
	if !c.Store.Keys.IsSetUp() {
		return false, nil
	}
	queue := w.GetTaskQueue()
	if deployments.SharedOfTaskQueue(queue) != c.Store.Organizations.SharedTaskQueue() {
		return false, nil
	}
	if c.Store.Keys.Identity() != "" {
		return true, nil
	}
	name, ok := stackOf(w.GetExecution().GetWorkflowId())
	if !ok {
		return true, nil
	}
	known, err := c.Store.Knows(ctx, name)
	return known, err
}

// stackOf returns the stack of a workflow id.
func stackOf(id string) (deployments.StackName, bool) {
	if text, ok := strings.CutPrefix(id, "stack/"); ok {
		name, err := deployments.ParseStackName(text, deployments.StackName{})
		return name, err == nil
	}
	u, err := deployments.UpdateOfWorkflow(id)
	return u.StackName, err == nil
}
