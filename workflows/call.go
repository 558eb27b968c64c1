package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

// call is one activity, which carries out one or more commands of the core.
type call struct {
	name    string // of the activity type
	id      string // unique among those in flight
	summary string
	ops     []int // the operations that Abandon may name
	input   any
	timeout time.Duration // start to close; zero means longestActivity
	retry   *temporal.RetryPolicy
	events  func(workflow.Context, workflow.Future) []engine.Event // returns the events of the ended activity
}

// start schedules the call on a worker.
func (c call) start(ctx workflow.Context, worker string) flight {
	ctx, cancel := workflow.WithCancel(onWorker(ctx, worker, c.retry))
	o := workflow.GetActivityOptions(ctx)
	o.ActivityID, o.Summary = c.id, clip(c.summary, summaryBytes)
	if c.timeout > 0 {
		o.StartToCloseTimeout = c.timeout
	}
	ctx = workflow.WithActivityOptions(ctx, o)
	return flight{call: c, worker: worker, future: execute(ctx, c.name, c.input), cancel: cancel}
}

// flight is a call whose activity has been scheduled and has not ended.
type flight struct {
	call
	worker string
	future workflow.Future
	cancel workflow.CancelFunc
}

// stepRound returns the operation and the round of a step, or of the settling of one; 0 for other calls.
func (c call) stepRound() (op, round int) {
	switch in := c.input.(type) {
	case deployments.StepInput:
		return in.Step.Op, in.Round
	case deployments.SettleInput:
		return in.Settle.Step.Op, in.Round
	}
	return 0, 0
}

// eventsOf returns a function that turns an ended call into events: ok gets its result, failed an error that is not
// retried.
func eventsOf[T any](
	ok func(T) []engine.Event, failed func(error) []engine.Event,
) func(workflow.Context, workflow.Future) []engine.Event {
	return func(ctx workflow.Context, f workflow.Future) []engine.Event {
		var v T
		if err := f.Get(ctx, &v); err != nil {
			return failed(err)
		}
		return ok(v)
	}
}

// single returns a result that is itself an event as a list of one.
func single[T engine.Event](v T) []engine.Event { return []engine.Event{v} }

// planCalls groups plans that are ready at the same time into calls, each small enough for one payload.
func (r *run) planCalls(plans []engine.Plan) []call {
	var out []call
	for len(plans) > 0 {
		n := fits(len(plans), planItems, planBytes, func(i int) int { return planSize(plans[i]) })
		out = append(out, r.planCall(plans[:n:n]))
		plans = plans[n:]
	}
	return out
}

func (r *run) planCall(plans []engine.Plan) call {
	summary := fmt.Sprintf("plan %d resources", len(plans))
	if len(plans) == 1 {
		summary = fmt.Sprintf("plan %s %s", plans[0].Goal.Type, plans[0].Goal.Name)
	}
	var ops []int // of plans that can be cancelled
	for _, p := range plans {
		if p.Analyze {
			ops = append(ops, p.Op)
		}
	}
	return call{
		name: deployments.ActivityPlanResources, id: fmt.Sprintf("plan-%d", plans[0].Op), summary: summary,
		ops: ops, retry: &retryForever,
		input: deployments.PlanInput{Update: r.in.Update, Base: r.in.Base, Plans: plans},
		events: eventsOf(func(out deployments.PlanOutput) []engine.Event {
			events := make([]engine.Event, 0, len(out.Plans))
			for _, p := range out.Plans {
				events = append(events, p)
			}
			r.queueBatch(out.Messages)
			return events
		}, func(err error) []engine.Event {
			events := make([]engine.Event, 0, len(plans))
			for _, p := range plans {
				events = append(events, engine.Planned{Op: p.Op, Error: messageOf(err)})
			}
			return events
		}),
	}
}

func (r *run) cascadeCall(c engine.Cascade) call {
	return call{
		name: deployments.ActivityPlanCascade, id: fmt.Sprintf("cascade-%d", c.Op), retry: &retryForever,
		summary: fmt.Sprintf("plan the dependents of %s", snapshot.NameOf(c.Root.URN)),
		input:   deployments.CascadeInput{Update: r.in.Update, Base: r.in.Base, Cascade: c},
		events: eventsOf(single[engine.CascadePlanned], func(err error) []engine.Event {
			return single(engine.CascadePlanned{Op: c.Op, Error: messageOf(err)})
		}),
	}
}

func (r *run) compareCall(c engine.Compare) call {
	return call{
		name: deployments.ActivityCompareProviders, id: fmt.Sprintf("compare-%d", c.Op), retry: &retryForever,
		summary: "compare provider " + c.Old.Ref,
		input:   deployments.CompareInput{Update: r.in.Update, Base: r.in.Base, Compare: c},
		events: eventsOf(single[engine.ProviderDiffed], func(err error) []engine.Event {
			return single(engine.ProviderDiffed{Op: c.Op, Error: messageOf(err)})
		}),
	}
}

// stepCall calls a provider. The activity reports every definite outcome itself. So any error except "not started"
// means an unknown outcome, and so does a cancel, unless it came before the activity began.
func (r *run) stepCall(s engine.Step) call {
	round := r.in.Rounds[s.Op] + 1
	timeout := longestActivity
	if s.Timeout > 0 {
		timeout = stepGrace + time.Duration(s.Timeout*float64(time.Second))
	}
	in := deployments.StepInput{Update: r.in.Update, Base: r.in.Base, Step: s, Round: round + s.Retries}
	return call{
		name: deployments.ActivityStep, id: fmt.Sprintf("%s-%d", s.Kind, s.Op), ops: []int{s.Op}, timeout: timeout,
		retry:   stepRetryPolicy(r.in.Retries.Of(s.Type)),
		summary: fmt.Sprintf("%s %s %s", s.Kind, s.Type, snapshot.NameOf(s.URN)),
		input:   in,
		events: eventsOf(func(out deployments.StepOutput) []engine.Event {
			if !IsResult(out.StepFinished, s.Op, in.Attempt()) {
				// not from a worker: somebody completed the activity by hand
				r.recordOutcome(s.Op, engine.OutcomeUnknown)
				return single(engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeUnknown,
					Error: "its activity was completed with another result"})
			}
			return r.stepFinished(out)
		}, func(err error) []engine.Event {
			if out, ok := StepOf(err); ok && IsResult(out.StepFinished, s.Op, in.Attempt()) {
				return r.stepFinished(out)
			}
			outcome := engine.OutcomeUnknown
			if cancelledFirst(err) {
				outcome = engine.OutcomeCancelled
			}
			r.recordOutcome(s.Op, outcome)
			return single(engine.StepFinished{Op: s.Op, Outcome: outcome, Error: messageOf(err)})
		}),
	}
}

// hookCall runs a function of the program. If its worker is lost, it waits for the next one, like a plan.
func (r *run) hookCall(h engine.Hook) call {
	return call{
		name: deployments.ActivityRunHook, id: fmt.Sprintf("hook-%d-%s-%d-%d", h.Op, h.Point, h.Nth, len(h.Errors)),
		ops: []int{h.Op}, retry: &retryForever,
		summary: fmt.Sprintf("hook %s (%s) of %s %s", h.Name, h.Point, h.Type, snapshot.NameOf(h.URN)),
		input:   deployments.HookInput{Update: r.in.Update, Base: r.in.Base, Hook: h},
		events: eventsOf(single[engine.HookFinished], func(err error) []engine.Event {
			return single(hookLost(h, err))
		}),
	}
}

// hookLost returns the result of a hook whose activity failed.
func hookLost(h engine.Hook, err error) engine.HookFinished {
	return engine.HookFinished{Op: h.Op, Point: h.Point, Nth: h.Nth, Error: messageOf(err)}
}

// IsResult reports whether a result is that of an attempt of an operation. Results of the same type open in all
// activities of the workflow, so whoever can write to Temporal may answer with that of an earlier attempt.
func IsResult(f engine.StepFinished, op, attempt int) bool {
	return f.Op == op && (f.Attempt == attempt || f.Attempt == 0)
}

// stepFinished records the result of a step.
func (r *run) stepFinished(out deployments.StepOutput) []engine.Event {
	r.recordOutcome(out.Op, out.Outcome)
	r.queueBatch(out.Messages)
	return single(out.StepFinished)
}

// recordOutcome counts the rounds in which a step's worker was lost. A step that ends without effect keeps its count:
// an earlier round may still have to be settled.
func (r *run) recordOutcome(op int, outcome engine.Outcome) {
	switch outcome {
	case engine.OutcomeUnknown:
		if r.in.Rounds == nil {
			r.in.Rounds = map[int]int{}
		}
		r.in.Rounds[op]++
	case engine.OutcomeDone, engine.OutcomePartial:
		delete(r.in.Rounds, op)
	default:
	}
}

func (r *run) settleCall(s engine.Settle) call {
	op := s.Step.Op
	retry, timeout := &retryForever, longestActivity
	if r.core.Forced { // a forced cancel has no other way to end it
		retry, timeout = &retryBriefly, short
	}
	in := deployments.SettleInput{Update: r.in.Update, Base: r.in.Base, Settle: s,
		Round: r.in.Rounds[op] + s.Step.Retries, Worker: r.lostOn[op]}
	return call{
		name: deployments.ActivitySettle, id: fmt.Sprintf("settle-%d", op), ops: []int{op}, retry: retry, timeout: timeout,
		summary: fmt.Sprintf("settle %s %s %s", s.Step.Kind, s.Step.Type, snapshot.NameOf(s.Step.URN)),
		input:   in,
		events: func(ctx workflow.Context, f workflow.Future) []engine.Event {
			var found engine.StepFinished
			if err := f.Get(ctx, &found); err != nil {
				found = engine.StepFinished{Op: op, Outcome: engine.OutcomeUndecidable, Error: messageOf(err)}
			} else if !IsResult(found, op, in.Attempt()) {
				found = engine.StepFinished{Op: op, Outcome: engine.OutcomeUndecidable,
					Error: "its activity was completed with another result"}
			}
			if r.asksFormerWorker(ctx, in, found) {
				r.toInquire = append(r.toInquire, inquiry{in, found})
				return nil
			}
			return r.settled(in, found)
		},
	}
}

// settled records what was found out about a lost step.
func (r *run) settled(in deployments.SettleInput, f engine.StepFinished) []engine.Event {
	op := in.Settle.Step.Op
	delete(r.lostOn, op)
	if f.Outcome == engine.OutcomeAbsent && in.Settle.Again && r.in.Rounds[op] >= maxRounds {
		f.Outcome, f.Error = engine.OutcomeFailed, fmt.Sprintf(
			"its answer was lost in each of %d attempts%s; Temporal's Web UI shows the attempts", r.in.Rounds[op],
			r.core.LastError(op))
		if kind := in.Settle.Step.Kind; kind == engine.StepCreate || kind == engine.StepCreateReplacement {
			// the convergent provider was not asked whether the resource exists
			f.Outcome = engine.OutcomeUndecidable
		}
	}
	r.recordOutcome(op, f.Outcome)
	return single(f)
}

// neverStarted reports whether an activity, or its last attempt, ended before it began: its worker is gone. The error
// of an earlier attempt stands only as the cause of the timeout, and is ignored.
func neverStarted(err error) bool {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
	}
	var failure *temporal.ApplicationError
	return errors.As(err, &failure) && failure.Type() == deployments.ErrorNotStarted
}

// cancelledFirst reports whether an activity was cancelled before a worker began it, so that it had no effect. Of one
// that a worker has begun, neither a cancel nor a cause of its failure says that: whoever can use the namespace can end
// it like this, and the worker reports a cancel as a result.
func cancelledFirst(err error) bool {
	var failed *temporal.ActivityError
	if !errors.As(err, &failed) {
		return temporal.IsCanceledError(err)
	}
	_, cancelled := failed.Unwrap().(*temporal.CanceledError) //nolint:errorlint // not one further down
	return cancelled && failed.StartedEventID() == 0
}

// workerLost reports whether an activity ended because its worker did not respond.
func workerLost(err error) bool {
	return neverStarted(err) || timedOut(err, enumspb.TIMEOUT_TYPE_HEARTBEAT)
}

// silent reports whether an activity ended without a word of its worker, which may still be at it.
func silent(err error) bool {
	return timedOut(err, enumspb.TIMEOUT_TYPE_HEARTBEAT) || timedOut(err, enumspb.TIMEOUT_TYPE_START_TO_CLOSE)
}

func timedOut(err error, kind enumspb.TimeoutType) bool {
	var timeout *temporal.TimeoutError
	return errors.As(err, &timeout) && timeout.TimeoutType() == kind
}

// messageOf returns the message of an activity's error without the text that Temporal adds.
func messageOf(err error) string {
	var failure *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	switch {
	case errors.As(err, &timeout):
		return "its worker stopped responding"
	case errors.As(err, &failure):
		return failure.Message()
	case temporal.IsCanceledError(err):
		return "it was cancelled"
	}
	return err.Error()
}
