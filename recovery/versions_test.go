package recovery

import (
	"strconv"
	"testing"

	"go.temporal.io/api/deployment/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/workflows"
)

func TestAnUpdateWhoseBuildIsGoneContinuesUnlessItWasCancelled(t *testing.T) {
	terminated := func(reason string) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
			WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{
				Reason: reason},
		}}
	}
	signalled := func(name string) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
				SignalName: name},
		}}
	}
	requested := &historypb.HistoryEvent{
		Attributes: &historypb.HistoryEvent_WorkflowExecutionCancelRequestedEventAttributes{
			WorkflowExecutionCancelRequestedEventAttributes: &historypb.WorkflowExecutionCancelRequestedEventAttributes{},
		},
	}
	for name, c := range map[string]struct {
		events           []*historypb.HistoryEvent
		moved, cancelled bool
	}{
		"by hand": {[]*historypb.HistoryEvent{terminated("by hand")}, false, false},
		"its build is gone": {[]*historypb.HistoryEvent{signalled(deployments.SignalReached), terminated(buildGone)},
			true, false},
		"cancelled before": {[]*historypb.HistoryEvent{signalled(deployments.SignalCancel), terminated(buildGone)},
			true, true},
		"cancelled in the web": {[]*historypb.HistoryEvent{requested, terminated(buildGone)}, true, true},
	} {
		if moved, cancelled := (&history{events: c.events}).migrated(); moved != c.moved || cancelled != c.cancelled {
			t.Errorf("%s: moved %v, cancelled %v", name, moved, cancelled)
		}
	}
}

func TestAHistoryInWhichNoTaskHasEndedFitsEveryBuild(t *testing.T) {
	for _, scene := range []string{"create", "continue-as-new"} {
		for n, run := range recorded(t, scene) {
			for end, e := range run.Events {
				if e.GetWorkflowTaskCompletedEventAttributes() != nil {
					break
				}
				if !newHistory("", run.Events[:end+1], worker.WorkflowReplayerOptions{}).compatible() {
					t.Errorf("%s, run %d, does not fit after event %d", scene, n+1, end+1)
				}
			}
		}
	}
}

// What a replay does not compare, such as how much a save holds, differs between revisions, too.
func TestAHistoryOfAnotherRevisionIsNotGoneOnWith(t *testing.T) {
	for begun, goesOn := range map[string]bool{"": true, Build: true, "0": false,
		strconv.Itoa(workflows.Revision + 1): false} {
		h := newHistory("", recorded(t, "create")[0].Events, worker.WorkflowReplayerOptions{})
		for _, e := range h.events {
			if a := e.GetWorkflowTaskCompletedEventAttributes(); a != nil {
				a.DeploymentVersion = &deployment.WorkerDeploymentVersion{BuildId: begun}
			}
		}
		if h.compatible() != goesOn {
			t.Errorf("begun by build %q: fits: %v", begun, !goesOn)
		}
	}
}
