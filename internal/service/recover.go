package service

import (
	"context"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/deployctl/deployctl/deployments"
)

// recoverPoll is how often to check whether an update has been recovered.
const recoverPoll = time.Second

// Recover makes the stack's workflow recover, now, the update in the stack's head; the next update would do so first.
// The error of a recovery that cannot succeed says what to repair.
func (s *Service) Recover(ctx context.Context, r deployments.RecoverRequest) (deployments.UpdateInfo, error) {
	name := r.Stack
	head, err := s.Head(ctx, name)
	if err != nil || head.Active == nil {
		return deployments.UpdateInfo{}, err
	}
	u := deployments.UpdateName{StackName: name, Version: head.Active.Version}
	if u.Number() == 0 {
		return deployments.UpdateInfo{}, deployments.Errorf(deployments.CodeConflict,
			"the stack %s is being removed or renamed; if that was interrupted, do it again", name)
	}
	running, err := s.running(ctx, u)
	if err != nil {
		return deployments.UpdateInfo{}, err
	}
	if running {
		return deployments.UpdateInfo{}, deployments.Errorf(deployments.CodeConflict,
			"%s is running, and needs no recovery: wait for it, or end it with `deployctl cancel`", u)
	}
	in := deployments.Recovery{}
	if r.Discard {
		in.Discard = u
	}
	for released := false; ; {
		if err := s.request(ctx, name, deployments.UpdateRecover, nil, in); err != nil {
			return deployments.UpdateInfo{}, failure("recover the update", err)
		}
		info, err := s.Updates.Info(ctx, u)
		if err == nil && !info.Ended.IsZero() {
			return info, nil
		}
		if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
			return info, err
		}
		if err != nil && released { // an import that has ended by itself
			return deployments.UpdateInfo{}, nil
		}
		if head, err = s.Head(ctx, name); err != nil {
			return info, err
		}
		released = head.Active == nil || head.Active.Version != u.Version
		select {
		case <-ctx.Done():
			return info, failure("recover the update", ctx.Err())
		case <-time.After(recoverPoll):
		}
	}
}

// running reports whether an update's workflows run. An update whose Run has ended is about to end.
func (s *Service) running(ctx context.Context, u deployments.UpdateName) (bool, error) {
	for _, id := range []string{deployments.UpdateWorkflowID(u), deployments.RunWorkflowID(u)} {
		described, err := s.temporal.DescribeWorkflowExecution(ctx, id, "")
		err = failure("look at the update", err)
		if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
			return false, err
		}
		if err == nil && described.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return false, nil
		}
		if err != nil && id == deployments.UpdateWorkflowID(u) {
			return false, nil // it ended long ago
		}
	}
	return true, nil
}
