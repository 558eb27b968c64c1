package workflows

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// inquiries is a change of the workflow: the worker that made a lost attempt of a create is asked what it knows
// before the create is made again or left undecided on another worker.
const inquiries = "inquire-about-lost-attempts"

// inquiry is a lost attempt of which its worker is to be asked.
type inquiry struct {
	in    deployments.SettleInput
	found engine.StepFinished // what the present host has found
}

// asksFormerWorker reports whether what was found out about a lost create is not to be believed before the worker that
// made the attempt has been asked: its call may still run there, or its answer be known to it alone. One that has
// become the host was asked by settling itself. A forced cancel asks nobody.
func (r *run) asksFormerWorker(ctx workflow.Context, in deployments.SettleInput, found engine.StepFinished) bool {
	kind := in.Settle.Step.Kind
	return (kind == engine.StepCreate || kind == engine.StepCreateReplacement) &&
		(found.Outcome == engine.OutcomeAbsent || found.Outcome == engine.OutcomeUndecidable) &&
		in.Worker != "" && in.Worker != r.in.Worker && in.Settle.After == nil && !r.core.Forced &&
		workflow.GetVersion(ctx, inquiries, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// startInquiries asks about the attempts that wait for it.
func (r *run) startInquiries(ctx workflow.Context) {
	for _, q := range r.toInquire {
		ctx, cancel := workflow.WithCancel(ctx)
		answer, set := workflow.NewFuture(ctx)
		workflow.Go(ctx, func(ctx workflow.Context) { set.SetValue(r.ask(ctx, q)) })
		r.flights = append(r.flights, flight{worker: q.in.Worker, future: answer, cancel: cancel, call: call{
			name: deployments.ActivityAskFormerWorker, ops: []int{q.in.Settle.Step.Op}, input: q.in,
			events: eventsOf(func(f engine.StepFinished) []engine.Event { return r.settled(q.in, f) },
				func(error) []engine.Event { return r.settled(q.in, q.found) }),
		}})
	}
	r.toInquire = nil
}

// ask asks the worker that made a lost attempt, and returns what is known then. As long as the worker lives it is
// waited for: its activity heartbeats. It is taken for gone when it does not begin to answer while the present host
// answers at once: a Temporal that is slow delays both.
func (r *run) ask(ctx workflow.Context, q inquiry) engine.StepFinished {
	op := q.in.Settle.Step.Op
	silences := maxSilencesAbsent
	if q.found.Outcome == engine.OutcomeUndecidable {
		silences = maxSilencesUndecidable
	}
	for began := workflow.Now(ctx); silences > 0 && workflow.Now(ctx).Sub(began) < inquiryPatience; {
		asked := onInquiry(ctx, q.in.Worker, "ask "+q.in.Worker+" about "+q.in.Settle.Step.URN.Name())
		answer := execute(asked, deployments.ActivityAskFormerWorker, q.in)
		present := execute(onPing(ctx, r.in.Worker), deployments.ActivityPingWorker)
		var known engine.StepFinished
		err := answer.Get(ctx, &known)
		switch {
		case ctx.Err() != nil:
			return q.found
		case err == nil && IsResult(known, op, q.in.Attempt()) && known.Outcome != engine.OutcomeUnknown:
			return known
		case !timedOut(err, enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START): // it knows nothing, or has ended for certain
			return q.found
		case present.Get(ctx, nil) == nil:
			silences--
		}
	}
	return q.found
}
