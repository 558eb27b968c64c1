package workflows

import (
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// analyzeStack starts the analysis of the stack, once the values to which its states refer are saved. Nothing else is
// in flight.
func (r *run) analyzeStack(ctx workflow.Context, c engine.AnalyzeStack) {
	in := deployments.AnalyzeStackInput{Update: r.in.Update, Base: r.in.Base, Command: c}
	err := r.saver.flush(ctx)
	if err == nil {
		in.Command.States, in.Spilled, err = r.spillStates(ctx, c)
	}
	if err != nil {
		r.handle(engine.StackAnalyzed{Op: c.Op, Error: "the policies of the stack were not checked: " + messageOf(err)})
		return
	}
	r.start(ctx, call{
		name: deployments.ActivityAnalyzeStack, id: fmt.Sprintf("analyze-stack-%d", c.Op), ops: []int{c.Op},
		summary: fmt.Sprintf("check the policies of %d resources", len(c.States)), retry: &retryForever, input: in,
		events: eventsOf(single[engine.StackAnalyzed], func(err error) []engine.Event {
			return single(engine.StackAnalyzed{Op: c.Op, Error: messageOf(err)})
		}),
	})
}

// spillStates returns the states of a stack, if an input can carry them; otherwise it stores them.
func (r *run) spillStates(
	ctx workflow.Context, c engine.AnalyzeStack,
) ([]engine.State, *deployments.Spilled, error) {
	data, err := json.Marshal(c.States)
	if err != nil || len(data) <= spillBytes {
		return c.States, nil, err
	}
	spilled, err := r.spill(ctx, fmt.Sprintf("%s-stack-%d", workflow.GetInfo(ctx).WorkflowExecution.RunID, c.Op), data)
	return nil, spilled, err
}
