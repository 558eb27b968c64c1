package recovery

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/workflows"
)

// history is the history of the last workflow run of a workflow. What earlier runs did is saved.
type history struct {
	worker.WorkflowReplayerOptions
	id     string
	data   converter.DataConverter // of any workflow
	events []*historypb.HistoryEvent
	latest map[int]*historypb.HistoryEvent   // the last Step or Settle that was scheduled for an operation
	closed map[int64]*historypb.HistoryEvent // the ends of activities, by the id of the event that scheduled them
	// repeated are creates whose last Settle left the lost attempt to be found by repeating the create.
	repeated map[int]bool
}

// readHistory reads the history of a workflow, as events does.
func (r *Recovery) readHistory(ctx context.Context, id, run string) (*history, error) {
	events, err := r.events(ctx, id, run)
	if err != nil {
		return nil, err
	}
	return newHistory(id, events, worker.WorkflowReplayerOptions{DataConverter: r.Data, FailureConverter: r.Failures}), nil
}

// events reads the events of a workflow run, or of the latest that continues it; "" stands for the latest run of the
// workflow. If a reset made that run, it reads the run that was reset instead: only that one has done anything.
func (r *Recovery) events(ctx context.Context, id, run string) ([]*historypb.HistoryEvent, error) {
	for {
		var events []*historypb.HistoryEvent
		for page := r.Client.GetWorkflowHistory(ctx, id, run, false,
			enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); page.HasNext(); {
			event, err := page.Next()
			if err != nil {
				return nil, err
			}
			events = append(events, event)
		}
		if run = effectiveRun(events); run == "" {
			return events, nil
		}
	}
}

// errNotStarted says that an update has not started its Run.
var errNotStarted = errors.New("the update has not started its Run")

// firstRun returns the first run of the Run that an update has started; the update is a run of its workflow, the one
// that has claimed the stack. Another run of either workflow has not done what the update did: anybody who can use the
// namespace can start one, and it ends at once.
func (r *Recovery) firstRun(ctx context.Context, u deployments.UpdateName, update string) (string, error) {
	events, err := r.events(ctx, deployments.UpdateWorkflowID(u), update)
	if err != nil {
		return "", err
	}
	err = errNotStarted
	for _, e := range events {
		child := e.GetChildWorkflowExecutionStartedEventAttributes().GetWorkflowExecution()
		if child.GetWorkflowId() == deployments.RunWorkflowID(u) {
			return child.GetRunId(), nil
		}
		if e.GetStartChildWorkflowExecutionInitiatedEventAttributes() != nil {
			err = nil // it may have started, which the update did not hear of: the latest run
		}
	}
	return "", err
}

// effectiveRun returns the run whose history counts instead of this one, or "" if this one counts. An earlier run that
// was reset had continued as new; then the latest of its successors counts.
func effectiveRun(events []*historypb.HistoryEvent) (run string) {
	for _, e := range events {
		if a := e.GetWorkflowTaskFailedEventAttributes(); a.GetCause() == enums.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
			run = a.GetBaseRunId()
		}
	}
	if run == "" && len(events) > 0 {
		run = events[len(events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return run
}

// newHistory returns a history that is replayed with the options, and whose replay may take as long as it does: a
// machine that is busy must not make a history look broken.
func newHistory(id string, events []*historypb.HistoryEvent, o worker.WorkflowReplayerOptions) *history {
	o.DisableDeadlockDetection = true
	data := o.DataConverter
	if data == nil {
		data = converter.GetDefaultDataConverter()
	}
	h := &history{o, id, data, events, map[int]*historypb.HistoryEvent{}, map[int64]*historypb.HistoryEvent{},
		map[int]bool{}}
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); isStep(e) || isSettle(e) {
			id := a.GetActivityId()
			if op, err := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:]); err == nil {
				h.latest[op] = e
				var in deployments.SettleInput
				if isSettle(e) && h.read(e, a.GetInput(), &in) == nil {
					h.repeated[op] = in.Settle.Again
				}
			}
		}
		if scheduled := closes(e); scheduled != 0 {
			h.closed[scheduled] = e
		}
	}
	return h
}

func isStep(e *historypb.HistoryEvent) bool   { return activityOf(e) == deployments.ActivityStep }
func isSettle(e *historypb.HistoryEvent) bool { return activityOf(e) == deployments.ActivitySettle }

// activityOf returns the type of the activity that an event schedules, or "".
func activityOf(e *historypb.HistoryEvent) string {
	return e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
}

// closes returns the id of the event that scheduled the activity that an event ends; 0 if it ends none.
func closes(e *historypb.HistoryEvent) int64 {
	return max(
		e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId(),
		e.GetActivityTaskFailedEventAttributes().GetScheduledEventId(),
		e.GetActivityTaskTimedOutEventAttributes().GetScheduledEventId(),
		e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(),
	)
}

// read reads payloads of the workflow, or of the activity that the event e schedules.
func (h *history) read(e *historypb.HistoryEvent, payloads *commonpb.Payloads, to any) error {
	at := converter.SerializationContext(converter.WorkflowSerializationContext{WorkflowID: h.id})
	if activity := activityOf(e); activity != "" {
		at = converter.ActivitySerializationContext{WorkflowID: h.id, ActivityType: activity}
	}
	return converter.WithDataConverterSerializationContext(h.data, at).FromPayloads(payloads, to)
}

// outcomeOf returns the outcome of an operation that was in flight at the end of the history; false if it is not known.
// If the last attempt had no effect, an earlier lost attempt that was not looked for may still have had one.
func (h *history) outcomeOf(op int) (engine.StepFinished, bool) {
	out, ok := h.recordedOutcome(op)
	effect := out.Outcome == engine.OutcomeDone || out.Outcome == engine.OutcomePartial
	return out, ok && (effect || !h.repeated[op] && !doubted(out))
}

// doubted reports whether a step that failed was still to be looked for.
func doubted(out engine.StepFinished) bool { return out.Evidence != nil && out.Evidence.Look }

// recordedOutcome returns the outcome of the last Step or Settle of an operation, as the history records it.
func (h *history) recordedOutcome(op int) (engine.StepFinished, bool) {
	nothing := engine.StepFinished{Outcome: engine.OutcomeCancelled, Error: "its workflow was ended before it began"}
	scheduled := h.latest[op]
	if scheduled == nil {
		return nothing, true
	}
	end := h.closed[scheduled.GetEventId()]
	if a := end.GetActivityTaskCompletedEventAttributes(); a != nil {
		var out deployments.StepOutput
		var err error
		if isSettle(scheduled) {
			err = h.read(scheduled, a.GetResult(), &out.StepFinished)
		} else {
			err = h.read(scheduled, a.GetResult(), &out)
		}
		return out.StepFinished, err == nil && workflows.IsResult(out.StepFinished, op, h.attemptOf(scheduled))
	}
	if a := end.GetActivityTaskFailedEventAttributes(); a != nil && isStep(scheduled) {
		out, ok := workflows.StepOf(h.errorOf(a.GetFailure()))
		if ok && workflows.IsResult(out.StepFinished, op, h.attemptOf(scheduled)) {
			return out.StepFinished, true
		}
		of, ok := workflows.NotStartedOf(h.errorOf(a.GetFailure()))
		return nothing, ok && of.Op == op && of.Attempt == h.attemptOf(scheduled)
	}
	return nothing, isStep(scheduled) && neverBegan(end)
}

// attemptOf returns the attempt that a Step or a Settle is of; 0 if its input cannot be read.
func (h *history) attemptOf(scheduled *historypb.HistoryEvent) int {
	input := scheduled.GetActivityTaskScheduledEventAttributes().GetInput()
	if isSettle(scheduled) {
		var in deployments.SettleInput
		if h.read(scheduled, input, &in) != nil {
			return 0
		}
		return in.Attempt()
	}
	var in deployments.StepInput
	if h.read(scheduled, input, &in) != nil {
		return 0
	}
	return in.Attempt()
}

// neverBegan reports whether an activity that ended had not been started. What the server itself has written says that.
// The type of a failure does not: whoever can use the namespace can end an activity with any.
func neverBegan(end *historypb.HistoryEvent) bool {
	cancelled := end.GetActivityTaskCanceledEventAttributes()
	late := end.GetActivityTaskTimedOutEventAttributes().GetFailure().GetTimeoutFailureInfo()
	return cancelled != nil && cancelled.GetStartedEventId() == 0 ||
		late.GetTimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_START
}

// result returns the output of the Run if it ended by itself; else nil.
func (h *history) result() (*deployments.RunOutput, error) {
	last := h.events[len(h.events)-1]
	var out deployments.RunOutput
	if a := last.GetWorkflowExecutionCompletedEventAttributes(); a != nil {
		return &out, h.read(last, a.GetResult(), &out)
	}
	if a := last.GetWorkflowExecutionFailedEventAttributes(); a != nil {
		if out, ok := workflows.OutputOf(h.errorOf(a.GetFailure())); ok {
			return &out, nil
		}
	}
	return nil, nil
}

// errorOf converts a failure. The converter changes what it reads, and a history is read more than once.
func (h *history) errorOf(f *failurepb.Failure) error {
	failures := h.FailureConverter
	if failures == nil {
		failures = temporal.GetDefaultFailureConverter()
	}
	at := converter.WorkflowSerializationContext{WorkflowID: h.id}
	return converter.WithFailureConverterSerializationContext(failures, at).FailureToError(proto.CloneOf(f))
}

// replay rebuilds the Run as it was when it was closed.
func (h *history) replay() (replayed *workflows.Replayed, err error) {
	err = h.verify(workflows.Settings{OnRun: func(r *workflows.Replayed) { replayed = r }})
	if err == nil && replayed == nil {
		err = errors.New("the history is not that of a Run")
	}
	if err == nil {
		err = replayed.Broken()
	}
	return replayed, err
}

// verify replays the history, without its closing event, and returns how this build deviates from it; nil if it does
// not. The settings s see the replayed workflows.
func (h *history) verify(s workflows.Settings) error {
	replayer, err := worker.NewWorkflowReplayerWithOptions(h.WorkflowReplayerOptions)
	if err != nil {
		return err
	}
	workflows.New(s).Register(replayer)
	open := h.events
	if n := len(open) - 1; closesWorkflow(open[n].GetEventType()) {
		open = open[:n]
	}
	quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	return replayer.ReplayWorkflowHistoryWithOptions(quiet, &historypb.History{Events: open},
		worker.ReplayWorkflowHistoryOptions{
			OriginalExecution: workflow.Execution{ID: h.id},
		})
}

func closesWorkflow(t enums.EventType) bool {
	return t == enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED || t == enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED ||
		t == enums.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT || t == enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED
}
