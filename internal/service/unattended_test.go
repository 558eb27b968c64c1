package service

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// retrying is a Temporal in which an activity of each workflow fails again and again.
type retrying struct {
	sleeping
	failures map[string][]error // by workflow, then of one look after the other; the last stays
	kind     string
}

func (r *retrying) DescribeWorkflowExecution(
	_ context.Context, id, _ string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d := &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING},
	}
	left := r.failures[id]
	if len(left) == 0 {
		return d, nil
	}
	if len(left) > 1 {
		r.failures[id] = left[1:]
	}
	if left[0] != nil {
		d.PendingActivities = []*workflowpb.PendingActivityInfo{{
			ActivityType: &commonpb.ActivityType{Name: r.kind}, State: enums.PENDING_ACTIVITY_STATE_SCHEDULED,
			Attempt:     2,
			LastFailure: temporal.GetDefaultFailureConverter().ErrorToFailure(left[0]),
		}}
	}
	return d, nil
}

// toldOf is what who watches an update is told in the first minute, without what was expected anyway.
func toldOf(t *testing.T, r *retrying, u deployments.UpdateName) (told []string) {
	t.Helper()
	warmed(t)
	synctest.Test(t, func(t *testing.T) {
		store, err := statestore.New(&statestore.Memory{}, statestore.Options{Master: make([]byte, 32)})
		must(t, err)
		must(t, store.CreateStack(t.Context(), dev, nil))
		must(t, store.PutInfo(t.Context(), deployments.UpdateInfo{Update: u, Status: "running"}))
		s := New(r, store, Readers{Data: converter.GetDefaultDataConverter(),
			Failures: temporal.GetDefaultFailureConverter()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = s.Watch(ctx, u, func(e deployments.WatchEvent) error {
			if e.Event != nil && e.Event.DiagnosticEvent != nil {
				told = append(told, strings.TrimSpace(e.Event.DiagnosticEvent.Message))
			}
			return nil
		})
		cancel()
		synctest.Wait()
	})
	return told
}

func TestAWatcherLearnsOnceWhyAnActivityIsRetried(t *testing.T) {
	u := deployments.UpdateName{StackName: dev, Version: "1"}
	full, refused := errors.New("no space left on device"), errors.New("the credentials are refused")
	const again = "; it is tried again by itself"
	for _, c := range []struct {
		name     string
		workflow string
		kind     string
		failures []error
		told     []string
	}{
		{"the claim of an update fails", deployments.UpdateWorkflowID(u), deployments.ActivityClaim, []error{full},
			[]string{"Waiting: no space left on device" + again}},
		{"a save of its run fails", deployments.RunWorkflowID(u), deployments.ActivitySave, []error{refused},
			[]string{"Waiting: the credentials are refused" + again}},
		{"it fails for one reason and another in turn", deployments.UpdateWorkflowID(u), deployments.ActivityClaim,
			[]error{full, refused, full, refused},
			[]string{"Waiting: no space left on device" + again, "Waiting: the credentials are refused" + again}},
		{"it succeeds and something fails later", deployments.UpdateWorkflowID(u), deployments.ActivityClaim,
			[]error{full, nil, full},
			[]string{"Waiting: no space left on device" + again, "Waiting: no space left on device" + again}},
		{"a step fails, which its progress says", deployments.RunWorkflowID(u), deployments.ActivityStep, []error{full},
			nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			told := toldOf(t, &retrying{failures: map[string][]error{c.workflow: c.failures}, kind: c.kind}, u)
			if strings.Join(told, "\n") != strings.Join(c.told, "\n") {
				t.Errorf("it is told %q", told)
			}
		})
	}
}
