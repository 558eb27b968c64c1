package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/deployctl/deployctl/deployments"
)

// endLeftBehind ends the workflows of a stack that are of another bucket than the service's and that no worker serves,
// and reports whether there were any. A bucket that is lost leaves them behind in Temporal: they wait for workers that
// never come, under the names that the stack's workflows have.
//
// Nothing is lost if the other bucket exists after all. What its updates did is in their histories, from which its
// service recovers them.
func (s *Service) endLeftBehind(ctx context.Context, name deployments.StackName) (ended bool, err error) {
	stack := deployments.StackWorkflowID(name)
	d, err := s.execution(ctx, stack)
	queue := deployments.SharedOfTaskQueue(d.GetExecutionConfig().GetTaskQueue().GetName())
	if err != nil || queue == "" || queue == s.store.Organizations.SharedTaskQueue() ||
		s.attended(ctx, d.GetExecutionConfig().GetTaskQueue().GetName()) {
		return false, err
	}
	running, err := s.runningOn(ctx, name, queue)
	if err != nil {
		return false, err
	}
	others := slices.DeleteFunc(running, func(id string) bool { return id == stack })
	for _, workflow := range append(others, stack) { // the Stack last: until then this is repeated
		reason := fmt.Sprintf("it is of another bucket, whose task queue %s has no workers", queue)
		err := s.temporal.TerminateWorkflow(ctx, workflow, "", reason)
		if closed := (*serviceerror.NotFound)(nil); err != nil && !errors.As(err, &closed) {
			return false, failure("end what another bucket has left behind", err)
		}
	}
	return true, nil
}

// runningOn returns the ids of the running workflows of a stack that are on a StoreTaskQueue or on a queue beside it.
func (s *Service) runningOn(ctx context.Context, name deployments.StackName, shared string) (ids []string, err error) {
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND %s = '%s' AND %s = '%s' AND %s = '%s'",
		deployments.AttributeOrg, name.Organization, deployments.AttributeProject, name.Project,
		deployments.AttributeStack, name.Stack)
	for page := []byte(nil); ; {
		found, err := s.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query,
			NextPageToken: page})
		if err != nil {
			return nil, failure("list what another bucket has left behind", err)
		}
		for _, e := range found.GetExecutions() {
			on, own := e.GetTaskQueue(), s.store.Organizations.SharedTaskQueue()
			if strings.HasPrefix(on, shared) && !strings.HasPrefix(on, own) {
				ids = append(ids, e.GetExecution().GetWorkflowId())
			}
		}
		if page = found.GetNextPageToken(); len(page) == 0 {
			return ids, nil
		}
	}
}
