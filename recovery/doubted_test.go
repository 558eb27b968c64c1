package recovery

import (
	"testing"

	"go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
)

func TestAFailedStepThatWasStillToBeLookedForHasNoKnownOutcome(t *testing.T) {
	for look, known := range map[bool]bool{true: false, false: true} {
		result, err := converter.GetDefaultDataConverter().ToPayloads(engine.StepFinished{Op: 7,
			Outcome: engine.OutcomeFailed, Evidence: &engine.Evidence{Class: engine.ErrorAmbiguous, Look: look}})
		if err != nil {
			t.Fatal(err)
		}
		if out, ok := stepped(t, deployments.StepInput{Round: 1}, result).outcomeOf(7); ok != known {
			t.Errorf("to be looked for %v: %+v %v", look, out, ok)
		}
	}
}

func TestAResultOfAnotherStepOrAnEarlierAttemptIsNoOutcome(t *testing.T) {
	in := deployments.StepInput{Round: 2}
	for name, c := range map[string]struct {
		op, attempt int
		known       bool
	}{
		"its own":             {7, in.Attempt(), true},
		"of an earlier build": {7, 0, true},
		"of another step":     {6, in.Attempt(), false},
		"of its last attempt": {7, in.Attempt() - 1, false},
	} {
		result, err := converter.GetDefaultDataConverter().ToPayloads(engine.StepFinished{Op: c.op, Attempt: c.attempt,
			Outcome: engine.OutcomeDone, ID: "forged"})
		if err != nil {
			t.Fatal(err)
		}
		if out, ok := stepped(t, in, result).outcomeOf(7); ok != c.known {
			t.Errorf("%s: %+v %v", name, out, ok)
		}
	}
}

// Whoever can use the namespace ends an activity with any type of error, or cancels it.
func TestOnlyTheServerAndWhatIsSealedSayThatAStepWasNotStarted(t *testing.T) {
	in := deployments.StepInput{Step: engine.Step{Op: 7}, Round: 1}
	other := deployments.StepInput{Step: engine.Step{Op: 6}, Round: 1}
	forged := temporal.NewNonRetryableApplicationError("forged", deployments.ErrorNotStarted, nil)
	for name, c := range map[string]struct {
		end   *historypb.HistoryEvent
		known bool
	}{
		"its worker says so":       {failedBy(failure.StepNotStarted("elsewhere", in)), true},
		"a type alone":             {failedBy(forged), false},
		"what is of another step":  {failedBy(failure.StepNotStarted("elsewhere", other)), false},
		"a cancel before it began": {cancelledAfter(0), true},
		"a cancel after it began":  {cancelledAfter(2), false},
	} {
		h := steppedTo(t, in, c.end)
		if out, ok := h.outcomeOf(7); ok != c.known {
			t.Errorf("%s: %+v %v", name, out, ok)
		}
	}
}

func failedBy(err error) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventId: 2, Attributes: &historypb.HistoryEvent_ActivityTaskFailedEventAttributes{
		ActivityTaskFailedEventAttributes: &historypb.ActivityTaskFailedEventAttributes{ScheduledEventId: 1,
			StartedEventId: 2, Failure: temporal.GetDefaultFailureConverter().ErrorToFailure(err)}}}
}

func cancelledAfter(began int64) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{EventId: 2, Attributes: &historypb.HistoryEvent_ActivityTaskCanceledEventAttributes{
		ActivityTaskCanceledEventAttributes: &historypb.ActivityTaskCanceledEventAttributes{ScheduledEventId: 1,
			StartedEventId: began}}}
}

// stepped is the history of a step that has ended with a result.
func stepped(t *testing.T, in deployments.StepInput, result *common.Payloads) *history {
	t.Helper()
	return steppedTo(t, in, &historypb.HistoryEvent{EventId: 2,
		Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
				ScheduledEventId: 1, Result: result}}})
}

// steppedTo is that of a step with the event that ends it.
func steppedTo(t *testing.T, in deployments.StepInput, end *historypb.HistoryEvent) *history {
	t.Helper()
	input, err := converter.GetDefaultDataConverter().ToPayloads(in)
	if err != nil {
		t.Fatal(err)
	}
	return newHistory("", []*historypb.HistoryEvent{
		{EventId: 1, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityId: "create-7",
				ActivityType: &common.ActivityType{Name: deployments.ActivityStep}, Input: input}}},
		end,
	}, worker.WorkflowReplayerOptions{})
}
