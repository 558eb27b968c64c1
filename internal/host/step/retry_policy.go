package step

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/ratelimit"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"go.temporal.io/sdk/temporal"
)

// rejected ends an attempt whose call the provider rejected without effect. The step is repeated after the delay that
// the provider, or else the stack's policy, or else the account's limiter sets; it fails once the policy allows no more
// attempts. Temporal's count of attempts cannot be used: it includes attempts that only waited for their turn.
func (at *attempt) rejected(ctx context.Context, err *temporal.ApplicationError) (engine.StepFinished, error) {
	policy := at.session.own.Retries.Of(at.step.Type)
	if policy == (deployments.Retry{}) && err.NextRetryDelay() == 0 && at.pause > 0 {
		n := at.heartbeat.Rejected(ctx)
		return engine.StepFinished{}, failure.NotDone(err.Message(), ratelimit.Backoff(at.pause, n))
	}
	allowed := policy.Attempts
	if allowed == 0 {
		return engine.StepFinished{}, err
	}
	if n := at.heartbeat.Rejected(ctx); n < allowed {
		return engine.StepFinished{}, err
	}
	result := failed(fmt.Sprintf("%s; it was asked %d times, which is all that %s allows", err.Message(), allowed,
		stackkeys.Retry))
	result.Evidence = at.evidence
	return result, nil
}
