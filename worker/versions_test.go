package worker

import (
	"testing"

	historypb "go.temporal.io/api/history/v1"

	"github.com/deployctl/deployctl/deployments"
)

func TestAnUpdateWhoseBuildIsGoneGoesOnUnlessItWasCancelled(t *testing.T) {
	terminated := func(reason string) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
			WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{Reason: reason},
		}}
	}
	signalled := func(name string) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: name},
		}}
	}
	requested := &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionCancelRequestedEventAttributes{
		WorkflowExecutionCancelRequestedEventAttributes: &historypb.WorkflowExecutionCancelRequestedEventAttributes{},
	}}
	for name, c := range map[string]struct {
		events           []*historypb.HistoryEvent
		moved, cancelled bool
	}{
		"by hand":              {[]*historypb.HistoryEvent{terminated("by hand")}, false, false},
		"its build is gone":    {[]*historypb.HistoryEvent{signalled(deployments.SignalReached), terminated(goneBuild)}, true, false},
		"cancelled before":     {[]*historypb.HistoryEvent{signalled(deployments.SignalCancel), terminated(goneBuild)}, true, true},
		"cancelled in the web": {[]*historypb.HistoryEvent{requested, terminated(goneBuild)}, true, true},
	} {
		if moved, cancelled := (&record{events: c.events}).moved(); moved != c.moved || cancelled != c.cancelled {
			t.Errorf("%s: moved %v, cancelled %v", name, moved, cancelled)
		}
	}
}
