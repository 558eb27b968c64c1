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
)

// call is an activity that one or more commands of the core come to.
type call struct {
	name    string // of the activity
	id      string // unique among those in flight
	summary string
	op      int // the operation that Abandon names
	input   any
	timeout time.Duration // start to close; zero means longest
	retry   *temporal.RetryPolicy
	events  func(workflow.Context, workflow.Future) []engine.Event // of the ended activity
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
	return flight{call: c, worker: worker, future: workflow.ExecuteActivity(ctx, c.name, c.input), cancel: cancel}
}

// flight is a call in flight.
type flight struct {
	call
	worker string
	future workflow.Future
	cancel workflow.CancelFunc
}

// stepping is the operation that a call makes or settles, and in which round; 0 when it does neither.
func (c call) stepping() (op, round int) {
	switch in := c.input.(type) {
	case deployments.StepInput:
		return in.Step.Op, in.Round
	case deployments.SettleInput:
		return in.Settle.Step.Op, in.Round
	}
	return 0, 0
}

// result makes the events of an ended call: of its result with ok, of an error that will not pass with failed.
func result[T any](
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

// single makes the one event that a result is.
func single[T engine.Event](v T) []engine.Event { return []engine.Event{v} }

// plans gives the calls of plans that are ready at once: vectors, each small enough for a payload.
func (r *run) plans(plans []engine.Plan) []call {
	var out []call
	for len(plans) > 0 {
		n := fits(len(plans), planItems, planBytes, func(i int) int { return planSize(plans[i]) })
		out = append(out, r.plan(plans[:n:n]))
		plans = plans[n:]
	}
	return out
}

func (r *run) plan(plans []engine.Plan) call {
	summary := fmt.Sprintf("plan %d resources", len(plans))
	if len(plans) == 1 {
		summary = fmt.Sprintf("plan %s %s", plans[0].Goal.Type, plans[0].Goal.Name)
	}
	return call{
		name: deployments.ActivityPlan, id: fmt.Sprintf("plan-%d", plans[0].Op), summary: summary, retry: &patiently,
		input: deployments.PlanInput{Update: r.in.Update, Base: r.in.Base, Plans: plans},
		events: result(func(out deployments.PlanOutput) []engine.Event {
			events := make([]engine.Event, 0, len(out.Plans))
			for _, p := range out.Plans {
				events = append(events, p)
			}
			r.post(out.Messages)
			return events
		}, func(err error) []engine.Event {
			events := make([]engine.Event, 0, len(plans))
			for _, p := range plans {
				events = append(events, engine.Planned{Op: p.Op, Error: sentence(err)})
			}
			return events
		}),
	}
}

func (r *run) cascade(c engine.Cascade) call {
	return call{
		name: deployments.ActivityCascade, id: fmt.Sprintf("cascade-%d", c.Op), retry: &patiently,
		summary: fmt.Sprintf("plan what %s takes along", c.Root.URN.Name()),
		input:   deployments.CascadeInput{Update: r.in.Update, Base: r.in.Base, Cascade: c},
		events: result(single[engine.CascadePlanned], func(err error) []engine.Event {
			return single(engine.CascadePlanned{Op: c.Op, Error: sentence(err)})
		}),
	}
}

func (r *run) compare(c engine.Compare) call {
	return call{
		name: deployments.ActivityCompare, id: fmt.Sprintf("compare-%d", c.Op), retry: &patiently,
		summary: "compare provider " + c.Old.Ref,
		input:   deployments.CompareInput{Update: r.in.Update, Base: r.in.Base, Compare: c},
		events: result(single[engine.ProviderDiffed], func(err error) []engine.Event {
			return single(engine.ProviderDiffed{Op: c.Op, Error: sentence(err)})
		}),
	}
}

// step calls a provider. Its activity answers whatever is definite, so that any error but "not started" leaves the
// outcome open, and a cancel that it did not answer itself came before it began.
func (r *run) step(s engine.Step) call {
	round := r.in.Rounds[s.Op] + 1
	timeout := longest
	if s.Timeout > 0 {
		timeout = stepGrace + time.Duration(s.Timeout*float64(time.Second))
	}
	return call{
		name: deployments.ActivityStep, id: fmt.Sprintf("%s-%d", s.Kind, s.Op), op: s.Op, timeout: timeout,
		retry:   asAllowed(r.in.Retries.Of(s.Type)),
		summary: fmt.Sprintf("%s %s %s", s.Kind, s.Type, s.URN.Name()),
		input:   deployments.StepInput{Update: r.in.Update, Base: r.in.Base, Step: s, Round: round},
		events: result(func(out deployments.StepOutput) []engine.Event {
			if out.Op != s.Op { // not by a worker: somebody has completed the activity with something else
				r.decide(s.Op, engine.OutcomeUnknown)
				return single(engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeUnknown,
					Error: "its result is not its own"})
			}
			return r.stepped(out)
		}, func(err error) []engine.Event {
			if out, ok := StepOf(err); ok && out.Op == s.Op {
				return r.stepped(out)
			}
			outcome := engine.OutcomeUnknown
			if temporal.IsCanceledError(err) {
				outcome = engine.OutcomeCancelled
			}
			r.decide(s.Op, outcome)
			return single(engine.StepFinished{Op: s.Op, Outcome: outcome, Error: sentence(err)})
		}),
	}
}

// stepped takes what a step came to.
func (r *run) stepped(out deployments.StepOutput) []engine.Event {
	r.decide(out.Op, out.Outcome)
	r.post(out.Messages)
	return single(out.StepFinished)
}

// decide counts the rounds of a step that was lost. One that ends without effect keeps them: what was left by an
// earlier round may still be asked for.
func (r *run) decide(op int, outcome engine.Outcome) {
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

func (r *run) settle(s engine.Settle) call {
	op := s.Step.Op
	retry, timeout := &patiently, longest
	if r.core.Forced { // nothing else could end it
		retry, timeout = &briefly, short
	}
	return call{
		name: deployments.ActivitySettle, id: fmt.Sprintf("settle-%d", op), op: op, retry: retry, timeout: timeout,
		summary: fmt.Sprintf("find out about %s %s %s", s.Step.Kind, s.Step.Type, s.Step.URN.Name()),
		input:   deployments.SettleInput{Update: r.in.Update, Base: r.in.Base, Settle: s, Round: r.in.Rounds[op]},
		events: result(func(f engine.StepFinished) []engine.Event {
			if f.Op != op {
				f = engine.StepFinished{Op: op, Outcome: engine.OutcomeUndecidable, Error: "its result is not its own"}
			}
			if f.Outcome == engine.OutcomeAbsent && s.Again && r.in.Rounds[op] >= mostRounds {
				f.Outcome, f.Error = engine.OutcomeFailed, fmt.Sprintf(
					"it was begun %d times, and lost each time; the attempts in Temporal's "+
						"Web UI say why", r.in.Rounds[op])
				if s.Step.Kind == engine.StepCreate || s.Step.Kind == engine.StepCreateReplacement {
					// a provider that finds it by itself was not asked whether it is there
					f.Outcome = engine.OutcomeUndecidable
				}
			}
			r.decide(op, f.Outcome)
			return single(f)
		}, func(err error) []engine.Event {
			return single(engine.StepFinished{Op: op, Outcome: engine.OutcomeUndecidable, Error: sentence(err)})
		}),
	}
}

// unstarted reports that an activity, or its last attempt, ended without having begun: its worker is not there. What an
// attempt before failed of is the cause of a timeout, and tells nothing.
func unstarted(err error) bool {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
	}
	var failure *temporal.ApplicationError
	return errors.As(err, &failure) && failure.Type() == deployments.ErrorNotStarted
}

// lost reports that an activity ended because its worker did not answer.
func lost(err error) bool { return unstarted(err) || timedOut(err, enumspb.TIMEOUT_TYPE_HEARTBEAT) }

func timedOut(err error, kind enumspb.TimeoutType) bool {
	var timeout *temporal.TimeoutError
	return errors.As(err, &timeout) && timeout.TimeoutType() == kind
}

// sentence tells of an activity's error without Temporal's own words around it.
func sentence(err error) string {
	var failure *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	switch {
	case errors.As(err, &timeout):
		return "its worker did not report any more"
	case errors.As(err, &failure):
		return failure.Message()
	case temporal.IsCanceledError(err):
		return "it was cancelled"
	}
	return err.Error()
}
