package activities

import (
	"context"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/panics"
)

// Refresh reads stored resources and reports how the real resources differ from the state. It has no effect, so it may
// run any number of times. Its result has only the refreshes that succeeded: the others are repeated by Step, which
// knows retries, rate limits and a cancel of one.
func (a *Activities) Refresh(ctx context.Context, in deployments.RefreshInput) (deployments.RefreshOutput, error) {
	s, err := a.hosted(ctx, in.Update, in.Base)
	if err != nil {
		return deployments.RefreshOutput{}, failure(err)
	}
	heartbeat := startHeartbeat(ctx, a.Heart)
	defer heartbeat.stop()

	results := make([]engine.StepFinished, len(in.Steps))
	var reading sync.WaitGroup
	for i, step := range in.Steps {
		reading.Go(func() {
			// After a panic there is no result, so Step repeats the refresh and reports it.
			_ = panics.Do("refreshing "+string(step.URN), func() error {
				at := &attempt{session: s, step: step, heartbeat: heartbeat}
				result, err := at.guarded(ctx)
				if err == nil && hadEffect(result) {
					at.redactResult(ctx, &result)
					results[i] = result
				}
				return err
			})
		})
	}
	reading.Wait()
	if ctx.Err() != nil { // the errors of the reads are caused by the end of the context
		return deployments.RefreshOutput{}, ctx.Err()
	}
	var out deployments.RefreshOutput
	for _, result := range results {
		if result.Outcome != "" {
			out.Done = append(out.Done, result)
		}
	}
	return out, nil
}
