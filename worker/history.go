package worker

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"

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

// record is the history of the last run of a Run workflow: what earlier ones did is saved.
type record struct {
	worker.WorkflowReplayerOptions
	id     string
	data   converter.DataConverter // of this workflow
	events []*historypb.HistoryEvent
	latest map[int]*historypb.HistoryEvent   // the last Step or Settle that was scheduled for an operation
	closed map[int64]*historypb.HistoryEvent // how activities ended, by the id of the event that scheduled them
	doubts map[int]bool                      // creates of which a lost attempt was to be found by making them again
}

// recordOf reads the history of a workflow.
func (c *Connection) recordOf(ctx context.Context, id string) (*record, error) {
	sealing := newCodec(c.Store.Keyring(), c.config.Temporal.Namespace)
	sealing.earlier = true // what it did is done, whichever build it was
	data := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), sealing)
	events, err := c.historyOf(ctx, id)
	if err != nil {
		return nil, err
	}
	return newRecord(id, events, worker.WorkflowReplayerOptions{
		DataConverter: data, FailureConverter: newFailures(data), DisableDeadlockDetection: true,
	}), nil
}

func newRecord(id string, events []*historypb.HistoryEvent, o worker.WorkflowReplayerOptions) *record {
	data := o.DataConverter
	if data == nil {
		data = converter.GetDefaultDataConverter()
	}
	data = converter.WithDataConverterSerializationContext(data, converter.WorkflowSerializationContext{WorkflowID: id})
	h := &record{o, id, data, events, map[int]*historypb.HistoryEvent{}, map[int64]*historypb.HistoryEvent{},
		map[int]bool{}}
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); isStep(e) || isSettle(e) {
			id := a.GetActivityId()
			if op, err := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:]); err == nil {
				h.latest[op] = e
				var in deployments.SettleInput
				if isSettle(e) && h.data.FromPayloads(a.GetInput(), &in) == nil {
					h.doubts[op] = in.Settle.Again
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

// activityOf is the type of the activity that an event schedules.
func activityOf(e *historypb.HistoryEvent) string {
	return e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
}

// closes is the id of the event that scheduled the activity whose end an event is; 0 when it is none.
func closes(e *historypb.HistoryEvent) int64 {
	return max(
		e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId(),
		e.GetActivityTaskFailedEventAttributes().GetScheduledEventId(),
		e.GetActivityTaskTimedOutEventAttributes().GetScheduledEventId(),
		e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(),
	)
}

// known is what the history tells of an operation that was in flight at its end; false when that is nothing. That the
// last attempt had no effect says nothing of one before it that was not looked for.
func (h *record) known(op int) (engine.StepFinished, bool) {
	told, ok := h.told(op)
	there := told.Outcome == engine.OutcomeDone || told.Outcome == engine.OutcomePartial
	return told, ok && (there || !h.doubts[op])
}

func (h *record) told(op int) (engine.StepFinished, bool) {
	nothing := engine.StepFinished{Outcome: engine.OutcomeCancelled, Error: "its workflow was ended before it began"}
	scheduled := h.latest[op]
	if scheduled == nil {
		return nothing, true
	}
	end := h.closed[scheduled.GetEventId()]
	if a := end.GetActivityTaskCompletedEventAttributes(); a != nil {
		var found engine.StepFinished
		err := h.data.FromPayloads(a.GetResult(), &found)
		return found, err == nil
	}
	if a := end.GetActivityTaskFailedEventAttributes(); a != nil && isStep(scheduled) {
		if out, ok := workflows.StepOf(h.errorOf(a.GetFailure())); ok {
			return out.StepFinished, true
		}
	}
	return nothing, isStep(scheduled) && neverBegan(end)
}

// neverBegan tells of an activity that failed that it had not been begun.
func neverBegan(end *historypb.HistoryEvent) bool {
	failed := end.GetActivityTaskFailedEventAttributes().GetFailure().GetApplicationFailureInfo()
	late := end.GetActivityTaskTimedOutEventAttributes().GetFailure().GetTimeoutFailureInfo()
	return end.GetActivityTaskCanceledEventAttributes() != nil || failed.GetType() == deployments.ErrorNotStarted ||
		late.GetTimeoutType() == enums.TIMEOUT_TYPE_SCHEDULE_TO_START
}

// result is what the Run came to, if it had ended by itself; else nil.
func (h *record) result() (*deployments.RunOutput, error) {
	last := h.events[len(h.events)-1]
	var out deployments.RunOutput
	if a := last.GetWorkflowExecutionCompletedEventAttributes(); a != nil {
		return &out, h.data.FromPayloads(a.GetResult(), &out)
	}
	if a := last.GetWorkflowExecutionFailedEventAttributes(); a != nil {
		if out, ok := workflows.OutputOf(h.errorOf(a.GetFailure())); ok {
			return &out, nil
		}
	}
	return nil, nil
}

// errorOf reads a failure. Reading changes one, and a history is read more than once.
func (h *record) errorOf(f *failurepb.Failure) error {
	failures := h.FailureConverter
	if failures == nil {
		failures = temporal.GetDefaultFailureConverter()
	}
	at := converter.WorkflowSerializationContext{WorkflowID: h.id}
	return converter.WithFailureConverterSerializationContext(failures, at).FailureToError(proto.CloneOf(f))
}

// replay brings the Run to where it was when it was closed.
func (h *record) replay() (remains *workflows.Remains, err error) {
	err = h.replays(workflows.Settings{Opened: func(r *workflows.Remains) { remains = r }})
	if err == nil && remains == nil {
		err = errors.New("the history is not that of a Run")
	}
	if err == nil {
		err = remains.Broken()
	}
	return remains, err
}

// replays tells why this build does not do what the history says; nil when it does.
func (h *record) replays(s workflows.Settings) error {
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

// fold gathers what stands in the history itself, for one that cannot be replayed: the saves that are not known to be
// made, and every create that was begun and of whose end they do not tell, as a pending operation, with its answer
// where that is known. Other steps are decided again anyway.
func (h *record) fold(known workflows.Known) (workflows.Ending, error) {
	var in deployments.RunInput
	if err := h.data.FromPayloads(h.events[0].GetWorkflowExecutionStartedEventAttributes().GetInput(),
		&in); err != nil {
		return workflows.Ending{}, err
	}
	end := workflows.Ending{Last: in.Saves}
	seq, ended, stored := 0, map[int]bool{}, map[int]bool{} // what the saves tell of operations
	for _, e := range h.events {
		if activityOf(e) != deployments.ActivitySave {
			continue
		}
		var save deployments.SaveInput
		if err := h.data.FromPayloads(e.GetActivityTaskScheduledEventAttributes().GetInput(), &save); err != nil {
			return end, err
		}
		for _, d := range save.Deltas {
			seq = max(seq, d.Seq)
			ended[d.Op] = ended[d.Op] || d.Kind == engine.DeltaEnd
			stored[d.Op] = stored[d.Op] || d.Kind == engine.DeltaPut
		}
		if end.Last = save.Number; h.closed[e.GetEventId()].GetActivityTaskCompletedEventAttributes() == nil {
			end.Saves = append(end.Saves, save)
		}
	}
	rest := deployments.SaveInput{Update: in.Update, Base: in.Base, Number: end.Last + 1}
	change := func(d engine.Delta) {
		seq++
		d.Seq = seq
		rest.Deltas = append(rest.Deltas, d)
	}
	for _, step := range h.creates() {
		s := step.Step
		if ended[s.Op] {
			continue
		}
		change(engine.Delta{Kind: engine.DeltaEnd, Op: s.Op}) // it may have begun
		if stored[s.Op] {
			continue
		}
		pending := engine.PendingOperation{Op: s.Op, Kind: "creating", State: *s.New, Seed: s.Seed}
		switch answer, ok := known(s.Op, step.Round); {
		case ok && (answer.Outcome == engine.OutcomeDone || answer.Outcome == engine.OutcomePartial):
			pending = pending.Answered(answer)
		case ok && answer.Outcome != engine.OutcomeUndecidable: // it had no effect
			continue
		}
		change(engine.Delta{Kind: engine.DeltaBegin, Op: s.Op, Pending: &pending})
	}
	if len(rest.Deltas) > 0 {
		end.Saves, end.Last = append(end.Saves, rest), rest.Number
	}
	return end, nil
}

// creates are the last attempts of all creates, in the order of the first.
func (h *record) creates() []deployments.StepInput {
	var all []deployments.StepInput
	at := map[int]int{}
	for _, e := range h.events {
		var in deployments.StepInput
		if !isStep(e) || h.data.FromPayloads(e.GetActivityTaskScheduledEventAttributes().GetInput(), &in) != nil ||
			in.Step.Kind != engine.StepCreate && in.Step.Kind != engine.StepCreateReplacement {
			continue
		}
		i, again := at[in.Step.Op]
		if !again {
			i, all = len(all), append(all, in)
		}
		at[in.Step.Op], all[i] = i, in
	}
	return all
}
