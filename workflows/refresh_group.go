package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// refreshCalls groups refreshes that are ready at the same time into calls, each small enough for one payload.
func (r *run) refreshCalls(steps []engine.Step) []call {
	var out []call
	for len(steps) > 0 {
		n := fits(len(steps), refreshItems, planBytes, func(i int) int { return headerSize + stateSize(steps[i].Old) })
		if n == 1 {
			out = append(out, r.stepCall(steps[0]))
		} else {
			out = append(out, r.refreshCall(steps[:n:n]))
		}
		steps = steps[n:]
	}
	return out
}

// refreshCall reads a group of resources. A refresh that did not succeed is repeated as a step, which is retried,
// cancelled and shown by itself; one that was not begun comes into another group. A read has no effect, so nothing
// needs to be settled if the worker is lost.
func (r *run) refreshCall(steps []engine.Step) call {
	ops := make([]int, len(steps))
	for i, s := range steps {
		ops[i] = s.Op
	}
	return call{
		name: deployments.ActivityRefreshResources, id: fmt.Sprintf("refresh-group-%d", ops[0]), ops: ops,
		retry:   &retryForever,
		summary: fmt.Sprintf("refresh %d resources", len(steps)),
		input:   deployments.RefreshInput{Update: r.in.Update, Base: r.in.Base, Steps: steps},
		events: func(ctx workflow.Context, f workflow.Future) []engine.Event {
			var out deployments.RefreshOutput
			var events []engine.Event
			if err := f.Get(ctx, &out); temporal.IsCanceledError(err) {
				for _, op := range ops {
					events = append(events, engine.StepFinished{Op: op, Outcome: engine.OutcomeCancelled,
						Error: messageOf(err)})
				}
				return events
			}
			// After another error, nothing is done.
			for _, done := range out.Done {
				events = append(events, done)
			}
			for _, s := range steps {
				begun := !slices.Contains(out.NotBegun, s.Op)
				switch {
				case slices.ContainsFunc(out.Done, func(d engine.StepFinished) bool { return d.Op == s.Op }):
				case r.core.Forced, r.core.Stopped && !begun: // no command to abandon it follows
					events = append(events, notRead(s.Op))
				case begun:
					r.notRefreshed = append(r.notRefreshed, s)
				default:
					r.toRefresh = append(r.toRefresh, s)
				}
			}
			return events
		},
	}
}

// notRead is the result of a refresh that a cancel has ended.
func notRead(op int) engine.StepFinished {
	return engine.StepFinished{Op: op, Outcome: engine.OutcomeCancelled, Error: "it was cancelled"}
}

// abandonRefresh ends a refresh that waits to be issued again.
func (r *run) abandonRefresh(op int) {
	for _, waiting := range []*[]engine.Step{&r.toRefresh, &r.notRefreshed} {
		n := len(*waiting)
		*waiting = slices.DeleteFunc(*waiting, func(s engine.Step) bool { return s.Op == op })
		if len(*waiting) < n {
			r.handle(notRead(op))
		}
	}
}
