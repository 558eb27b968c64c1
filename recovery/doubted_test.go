package recovery

import (
	"testing"

	"go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

func TestAFailedStepThatWasStillToBeLookedForHasNoKnownOutcome(t *testing.T) {
	for look, known := range map[bool]bool{true: false, false: true} {
		result, err := converter.GetDefaultDataConverter().ToPayloads(engine.StepFinished{Op: 7,
			Outcome: engine.OutcomeFailed, Evidence: &engine.Evidence{Class: engine.ErrorAmbiguous, Look: look}})
		if err != nil {
			t.Fatal(err)
		}
		h := newHistory("", []*historypb.HistoryEvent{
			{EventId: 1, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
				ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
					ActivityId: "create-7", ActivityType: &common.ActivityType{Name: deployments.ActivityStep}}}},
			{EventId: 2, Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
				ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
					ScheduledEventId: 1, Result: result}}},
		}, worker.WorkflowReplayerOptions{})
		if out, ok := h.outcomeOf(7); ok != known {
			t.Errorf("to be looked for %v: %+v %v", look, out, ok)
		}
	}
}
