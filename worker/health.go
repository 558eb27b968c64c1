package worker

import (
	"context"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// CheckReachable reports which part does not answer now, Temporal or the object store, or that this process may lack
// the newest keys of the bucket. It asks each part once.
func (c *Connection) CheckReachable(ctx context.Context) error {
	parts, _ := panics.NewGroup(ctx, "asking whether everything can be reached")
	parts.Go(func() error {
		if err := bucket.CheckReachable(ctx, c.once); err != nil {
			return err
		}
		return c.Store.Keys.Outdated()
	})
	parts.Go(func() error {
		_, err := c.Client.WorkflowService().DescribeNamespace(ctx,
			&workflowservice.DescribeNamespaceRequest{Namespace: c.config.Temporal.Namespace})
		if err != nil {
			return deployments.Errorf(deployments.CodeUnavailable, "Temporal at %s does not answer: %s",
				c.config.Temporal.Address, reason(err))
		}
		return nil
	})
	return parts.Wait()
}
