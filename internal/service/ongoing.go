package service

import (
	"context"
	"fmt"
	"slices"
	"strings"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

const (
	// maxOngoing is how many workflows are looked at: the latest.
	maxOngoing = 1000
	// ongoingAtOnce is how many stacks are asked at a time what runs and waits there.
	ongoingAtOnce = 8
)

// Ongoing lists the updates that run or wait: Temporal knows which workflows run, and the Stack workflows of those know
// what waits behind them.
func (s *Service) Ongoing(ctx context.Context, organization string) ([]deployments.UpdateInfo, error) {
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND WorkflowType IN ('%s', '%s')", deployments.WorkflowUpdate,
		deployments.WorkflowLease)
	if organization != "" {
		query += fmt.Sprintf(" AND %s = '%s'", deployments.AttributeOrg, organization)
	}
	page, err := s.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query,
		PageSize: maxOngoing})
	if err != nil {
		return nil, failure("list what runs", err)
	}
	running := map[deployments.StackName][]deployments.UpdateInfo{}
	for _, execution := range page.GetExecutions() {
		if u, err := deployments.UpdateOfWorkflow(execution.GetExecution().GetWorkflowId()); err == nil {
			running[u.StackName] = append(running[u.StackName], startedInfo(u, execution))
		}
	}
	stacks := make([]deployments.StackName, 0, len(running))
	for name := range running {
		stacks = append(stacks, name)
	}
	slices.SortFunc(stacks, func(a, b deployments.StackName) int { return strings.Compare(a.String(), b.String()) })
	lists := make([][]deployments.UpdateInfo, len(stacks))
	asking, ctx := panics.NewGroup(ctx, "listing what runs")
	asking.SetLimit(ongoingAtOnce)
	for i, name := range stacks {
		asking.Go(func() (err error) {
			lists[i], err = s.ongoingOf(ctx, name, running[name])
			return err
		})
	}
	err = asking.Wait()
	return slices.Concat(lists...), err
}

// startedInfo describes an update by what Temporal shows of its workflow.
func startedInfo(u deployments.UpdateName, execution *workflowpb.WorkflowExecutionInfo) deployments.UpdateInfo {
	info := deployments.UpdateInfo{Update: u, Status: deployments.StatusQueued,
		Started: execution.GetStartTime().AsTime()}
	text := func(name string) (value string) {
		payload := execution.GetSearchAttributes().GetIndexedFields()[name]
		_ = converter.GetDefaultDataConverter().FromPayload(payload, &value) // without it, it is not known
		return value
	}
	info.Initiator = text(deployments.AttributeInitiator)
	if kind := text(deployments.AttributeKind); kind == "preview" {
		info.Kind, info.DryRun = engine.KindUp, true
	} else {
		info.Kind = engine.Kind(kind)
	}
	return info
}

// ongoingOf describes the updates of a stack that run, and those that wait behind them.
func (s *Service) ongoingOf(
	ctx context.Context, name deployments.StackName, running []deployments.UpdateInfo,
) ([]deployments.UpdateInfo, error) {
	queue, err := s.queuedOrHead(ctx, name)
	if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
		return nil, err
	}
	var list []deployments.UpdateInfo
	for _, info := range running {
		known, err := s.Updates.Info(ctx, info.Update)
		switch {
		case err == nil && !known.Ended.IsZero():
			continue // its workflow is about to end
		case err == nil:
			info = known
		case deployments.CodeOf(err) != deployments.CodeNotFound:
			return nil, err
		}
		if queue.Active != nil && queue.Active.Update == info.Update {
			info.Error = queue.Active.Error
		}
		if info.Error == "" {
			info.Error = s.updateWaitsFor(ctx, info.Update)
		}
		if queue.Active != nil && queue.Active.Update == info.Update {
			info.Lease = queue.Active.Lease
		}
		if info.Error == "" {
			s.detail(ctx, &info)
		}
		list = append(list, info)
	}
	for i, waiting := range queue.Queued {
		if queue.Active != nil {
			waiting.Error = fmt.Sprintf("waits for update %s, as number %d of the queue", queue.Active.Update.Version, i+1)
		}
		list = append(list, waiting)
	}
	return list, nil
}
