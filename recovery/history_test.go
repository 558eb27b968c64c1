package recovery

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/proto"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/workflows"
)

// recorded reads the histories of a scene's Run, over its continue-as-new.
func recorded(t *testing.T, scene string) (runs []*historypb.History) {
	t.Helper()
	for n := 1; ; n++ {
		f, err := os.Open(filepath.Join("..", "workflows", "testdata", "histories", fmt.Sprint(workflows.Revision),
			fmt.Sprintf("%s.run-%d.json.gz", scene, n)))
		if os.IsNotExist(err) && n > 1 {
			return runs
		}
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		h, err := client.HistoryFromJSON(z, client.HistoryJSONOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		runs = append(runs, h)
	}
}

// commanded are the types of events that stand with the end of the task that made them.
var commanded = []enums.EventType{
	enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enums.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED,
	enums.EVENT_TYPE_TIMER_STARTED,
	enums.EVENT_TYPE_TIMER_CANCELED, enums.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED,
	enums.EVENT_TYPE_MARKER_RECORDED, enums.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
}

func decoded[T any](t *testing.T, payloads func(*T) error) T {
	t.Helper()
	var v T
	if err := payloads(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// outcome is what a history says that the world is like.
type outcome struct {
	base  []engine.State
	saves map[int]deployments.SaveInput // that were made
	begun map[int]engine.Step           // creates
	made  map[int]bool                  // creates that answered
}

func (o *outcome) read(t *testing.T, h *history) {
	for _, e := range h.events {
		a := e.GetActivityTaskScheduledEventAttributes()
		done := h.closed[e.GetEventId()].GetActivityTaskCompletedEventAttributes()
		switch activityOf(e) {
		case deployments.ActivityReadHeaders:
			if done != nil {
				o.base = decoded(t, func(v *deployments.Headers) error {
					return h.data.FromPayloads(done.GetResult(),
						v)
				}).States
			}
		case deployments.ActivitySave:
			if done != nil {
				save := decoded(t, func(v *deployments.SaveInput) error { return h.data.FromPayloads(a.GetInput(), v) })
				o.saves[save.Number] = save
			}
		case deployments.ActivityStep:
			step := decoded(t, func(v *deployments.StepInput) error {
				return h.data.FromPayloads(a.GetInput(),
					v)
			}).Step
			if step.Kind != engine.StepCreate && step.Kind != engine.StepCreateReplacement {
				continue
			}
			if neverBegan(h.closed[e.GetEventId()]) {
				continue
			}
			o.begun[step.Op] = step
			result, ended := engine.StepFinished{}, done != nil
			if failed := h.closed[e.GetEventId()].GetActivityTaskFailedEventAttributes(); failed != nil {
				var out deployments.StepOutput
				out, ended = workflows.StepOf(h.errorOf(failed.GetFailure()))
				result = out.StepFinished
			} else if ended {
				result = decoded(t, func(v *engine.StepFinished) error {
					return h.data.FromPayloads(done.GetResult(),
						v)
				})
			}
			if ended {
				o.made[step.Op] = result.Outcome == engine.OutcomeDone
				if result.Outcome == engine.OutcomeFailed && !h.repeated[step.Op] {
					delete(o.begun, step.Op)
				}
			}
		case deployments.ActivitySettle:
			if done != nil {
				asked := decoded(t, func(v *deployments.SettleInput) error {
					return h.data.FromPayloads(a.GetInput(),
						v)
				})
				result := decoded(t, func(v *engine.StepFinished) error {
					return h.data.FromPayloads(done.GetResult(),
						v)
				})
				if result.Outcome == engine.OutcomeAbsent && !asked.Settle.Again {
					delete(o.begun, result.Op)
				}
			}
		}
	}
}

// judge applies an ending: what may have been made is stored or pending, with its answer if it has one, and if the
// ending is whole all that was made is stored, only what may have been is pending, and the snapshot is sound.
func (o *outcome) judge(t *testing.T, end workflows.Salvage, whole bool) {
	t.Helper()
	for _, save := range end.Saves {
		o.saves[save.Number] = save
	}
	snap := snapshot.New(o.base, nil)
	for n := 1; n <= end.Last; n++ {
		save, ok := o.saves[n]
		if !ok {
			t.Errorf("save %d of %d is missing", n, end.Last)
		}
		for _, d := range save.Deltas {
			snap.Apply(d)
		}
	}
	states, pending := snap.States()
	if err := snapshot.Verify(states); err != nil && whole {
		t.Errorf("the snapshot is broken: %v", err)
	}
	for op, step := range o.begun {
		stored := slices.ContainsFunc(states, func(s engine.State) bool {
			return s.URN == step.URN && !s.Delete && s.Key == engine.Key(fmt.Sprint("o", op))
		})
		i := slices.IndexFunc(pending, func(p engine.PendingOperation) bool {
			return p.State.URN == step.URN &&
				p.Kind == "creating"
		})
		waits := i >= 0
		switch {
		case stored && waits:
			t.Errorf("%s is stored and pending", step.URN.Name())
		case !stored && !waits:
			t.Errorf("%s is forgotten", step.URN.Name())
		case o.made[op] && !stored && whole:
			t.Errorf("%s was made, and is not stored", step.URN.Name())
		case o.made[op] && waits && pending[i].State.ID == "":
			t.Errorf("%s was made, and its answer is forgotten", step.URN.Name())
		}
	}
	for _, p := range pending {
		if _, ok := o.begun[p.Op]; !ok && p.Kind == "creating" {
			t.Errorf("%s is pending, and was not begun", p.State.URN.Name())
		}
	}
}

// TestARunThatIsEndedAnywhereForgetsNothing ends every recorded Run after each of its events, and brings it to its end
// by replay, and by what stands in the history.
func TestARunThatIsEndedAnywhereForgetsNothing(t *testing.T) {
	for _, scene := range []string{"create", "failure", "second-epoch", "continue-as-new", "replacement",
		"unknown-outcome", "lost-worker"} {
		t.Run(scene, func(t *testing.T) {
			runs := recorded(t, scene)
			for i, run := range runs {
				for n := 1; n < len(run.Events); n++ {
					if slices.Contains(commanded, run.Events[n].GetEventType()) {
						continue
					}
					t.Run(fmt.Sprintf("run %d after %d events", i+1, n), func(t *testing.T) {
						outcomeOf := func(h *history) workflows.OutcomeOf {
							return func(op, _ int) (engine.StepFinished, bool) { return h.outcomeOf(op) }
						}
						h, o := terminated(t, runs[:i], run.Events[:n])
						if replayed, err := h.replay(); err == nil {
							o.judge(t, replayed.Finish(outcomeOf(h)), true)
						} else if n >= 4 {
							t.Error(err)
						}
						for k, more := 0, true; more; k++ { // a save can hold as much as it likes
							events, last := cut(t, run.Events[:n], k)
							more = !last
							h, o := terminated(t, runs[:i], events)
							end, err := h.salvage(outcomeOf(h))
							if err != nil {
								t.Fatal(err)
							}
							o.judge(t, end, false)
						}
					})
				}
			}
		})
	}
}

func TestARunThatEndedWithoutAResultIsRecoveredByReplay(t *testing.T) {
	for _, scene := range []string{"create", "failure"} {
		runs := recorded(t, scene)
		events := runs[len(runs)-1].Events
		h, o := terminated(t, runs[:len(runs)-1], events[:len(events)-1])
		h.events[len(h.events)-1] = &historypb.HistoryEvent{
			EventId: int64(len(events)), EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
				WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{
					Failure: &failurepb.Failure{Message: "the state could not be saved",
						FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
							ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "format", NonRetryable: true},
						}},
				}},
		}
		if out, err := h.result(); out != nil || err != nil {
			t.Errorf("%s: its result is %+v %v", scene, out, err)
		}
		replayed, err := h.replay()
		if err != nil {
			t.Fatalf("%s: %v", scene, err)
		}
		o.judge(t, replayed.Finish(func(op, _ int) (engine.StepFinished, bool) { return h.outcomeOf(op) }), true)
	}
}

// terminated is a Run that was ended from outside after some events, and what the world is like then.
func terminated(t *testing.T, earlier []*historypb.History, events []*historypb.HistoryEvent) (*history, *outcome) {
	t.Helper()
	h := newHistory("", append(slices.Clone(events), &historypb.HistoryEvent{
		EventId: int64(len(events) + 1), EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
	}), worker.WorkflowReplayerOptions{})
	o := &outcome{nil, map[int]deployments.SaveInput{}, map[int]engine.Step{}, map[int]bool{}}
	for _, run := range earlier {
		o.read(t, newHistory("", run.Events, worker.WorkflowReplayerOptions{}))
	}
	o.read(t, h)
	return h, o
}

// cut leaves k deltas in a save that the last of some events' tasks has begun; it tells whether that is all there are.
func cut(t *testing.T, events []*historypb.HistoryEvent, k int) (with []*historypb.HistoryEvent, all bool) {
	t.Helper()
	for i := len(events) - 1; i >= 0 && events[i].GetWorkflowTaskCompletedEventAttributes() == nil; i-- {
		if activityOf(events[i]) != deployments.ActivitySave {
			continue
		}
		dc := converter.GetDefaultDataConverter()
		event := proto.CloneOf(events[i])
		a := event.GetActivityTaskScheduledEventAttributes()
		save := decoded(t, func(v *deployments.SaveInput) error { return dc.FromPayloads(a.GetInput(), v) })
		if k >= len(save.Deltas) {
			break
		}
		save.Deltas = save.Deltas[:k]
		input, err := dc.ToPayloads(save)
		if err != nil {
			t.Fatal(err)
		}
		a.Input = input
		with = slices.Clone(events)
		with[i] = event
		return with, false
	}
	return events, true
}
