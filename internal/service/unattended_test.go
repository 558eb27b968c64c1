package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// retrying is a Temporal in which an activity of each workflow fails again and again.
type retrying struct {
	sleeping
	failures map[string][]error // by workflow, then of one look after the other; the last stays
	kind     string
	watched  bool // whoever begins to watch an update has asked whether it runs
}

func (r *retrying) DescribeWorkflowExecution(
	_ context.Context, id, _ string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d := &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING},
	}
	left := r.failures[id]
	if len(left) == 0 || !r.watched {
		r.watched = true
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
		store, err := statestore.New(&bucket.Memory{}, statestore.Options{Master: make([]byte, 32)})
		must(t, err)
		must(t, store.CreateStack(t.Context(), dev, nil))
		must(t, store.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: u, Status: "running"}))
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
		{"the claim of an update fails", deployments.UpdateWorkflowID(u), deployments.ActivityClaimStack, []error{full},
			[]string{"Waiting: no space left on device" + again}},
		{"a save of its run fails", deployments.RunWorkflowID(u), deployments.ActivitySave, []error{refused},
			[]string{"Waiting: the credentials are refused" + again}},
		{"it fails for one reason and another in turn", deployments.UpdateWorkflowID(u), deployments.ActivityClaimStack,
			[]error{full, refused, full, refused},
			[]string{"Waiting: no space left on device" + again, "Waiting: the credentials are refused" + again}},
		{"it fails for one reason with another file each time", deployments.UpdateWorkflowID(u),
			deployments.ActivityClaimStack,
			[]error{errors.New("mkdir /home/work/.new-123: " + full.Error()),
				errors.New("mkdir /home/work/.new-456: " + full.Error())},
			[]string{"Waiting: mkdir /home/work/.new-123: no space left on device" + again}},
		{"it succeeds and something fails later", deployments.UpdateWorkflowID(u), deployments.ActivityClaimStack,
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

// deserted is a Temporal whose workflows wait for a worker, and that says when workers have polled.
type deserted struct {
	sleeping
	polled []time.Duration // how long ago
	err    error
}

func (d *deserted) DescribeWorkflowExecution(
	context.Context, string, string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING},
		PendingWorkflowTask: &workflowpb.PendingWorkflowTaskInfo{State: enums.PENDING_WORKFLOW_TASK_STATE_SCHEDULED,
			ScheduledTime: timestamppb.New(time.Now().Add(-10 * time.Second))},
		ExecutionConfig: &workflowpb.WorkflowExecutionConfig{TaskQueue: &taskqueuepb.TaskQueue{Name: "the-queue"}},
	}, nil
}

func (d *deserted) DescribeTaskQueue(
	context.Context, string, enums.TaskQueueType,
) (*workflowservice.DescribeTaskQueueResponse, error) {
	answer := &workflowservice.DescribeTaskQueueResponse{}
	for _, ago := range d.polled {
		answer.Pollers = append(answer.Pollers, &taskqueuepb.PollerInfo{
			LastAccessTime: timestamppb.New(time.Now().Add(-ago))})
	}
	return answer, d.err
}

func TestAWaitForABusyWorkerIsNotCalledOneForAWorkerThatIsMissing(t *testing.T) {
	const none, slow = "none of the task queue the-queue takes this up", "those of the task queue the-queue have not taken"
	for name, c := range map[string]struct {
		temporal deserted
		away     time.Duration // how long ago Temporal was away; 0: never
		says     string
	}{
		"nobody has ever polled":               {deserted{}, 0, none},
		"the last worker is gone for a while":  {deserted{polled: []time.Duration{100 * time.Second}}, 0, none},
		"a worker polls":                       {deserted{polled: []time.Duration{time.Hour, 50 * time.Second}}, 0, slow},
		"Temporal does not say who polls":      {deserted{err: errors.New("overloaded")}, 0, slow},
		"Temporal was away a moment ago":       {deserted{}, 20 * time.Second, slow},
		"Temporal was away, and workers, too":  {deserted{}, 40 * time.Second, none},
		"Temporal was away, and a worker came": {deserted{polled: []time.Duration{time.Second}}, 40 * time.Second, slow},
	} {
		t.Run(name, func(t *testing.T) {
			var attended []bool
			s := New(&c.temporal, &statestore.Store{}, Readers{})
			s.Unattended = func(a bool) { attended = append(attended, a) }
			if c.away > 0 {
				at := time.Now().Add(-c.away)
				s.away.Store(&at)
			}
			err := s.checkClaimed(t.Context(), "an-update")
			if deployments.CodeOf(err) != deployments.CodeNoWorker || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v", err)
			}
			if !slices.Equal(attended, []bool{c.says == slow}) {
				t.Errorf("it is counted as %v", attended)
			}
		})
	}
}

func TestAnAnswerThatAPartIsAwayIsRemembered(t *testing.T) {
	s := New(&deserted{}, &statestore.Store{}, Readers{})
	s.Unavailable = func() error { return errors.New("Temporal does not answer") }
	if err := s.Away(); err == nil || s.away.Load() == nil {
		t.Errorf("%v, since %v", err, s.away.Load())
	}
}
