package metrics

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
)

// Work counts the updates and steps of a worker.
func (m *Metrics) Work() interceptor.WorkerInterceptor { return &work{metrics: m} }

type work struct {
	interceptor.WorkerInterceptorBase
	metrics *Metrics
}

// InterceptActivity is called once for every activity that runs.
func (w *work) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &counted{interceptor.ActivityInboundInterceptorBase{Next: next}, w.metrics}
}

type counted struct {
	interceptor.ActivityInboundInterceptorBase
	metrics *Metrics
}

// ExecuteActivity runs an activity and counts what it came to.
func (c *counted) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	begun := time.Now()
	result, err := c.Next.ExecuteActivity(ctx, in)
	if len(in.Args) != 1 {
		return result, err
	}
	switch arg := in.Args[0].(type) {
	case deployments.StepInput:
		finished, _ := result.(deployments.StepOutput)
		c.metrics.step(arg.Step.Kind, outcomeOf(finished, err), time.Since(begun))
	case deployments.ClaimInput:
		if claimed, _ := result.(deployments.Claimed); err == nil && claimed.Worker != "" && arg.Number <= 1 {
			c.metrics.began(toolOurs, arg.Request)
		}
	case deployments.UpdateInput: // of BeginLease
		if err == nil {
			c.metrics.began(toolPulumi, arg.Request)
		}
	case deployments.CommitInput, deployments.RecoverInput, deployments.LeaseEnd:
		if err == nil {
			c.metrics.ended(result, begun)
		}
	}
	return result, err
}

func (m *Metrics) step(op engine.StepKind, outcome string, took time.Duration) {
	m.steps.WithLabelValues(string(op), outcome).Inc()
	m.stepTime.WithLabelValues(string(op)).Observe(took.Seconds())
}

// began counts how long an update has waited that now begins.
func (m *Metrics) began(tool string, r deployments.UpdateRequest) {
	if r.Submitted == nil {
		return
	}
	kind := deployments.UpdateInfo{Kind: r.Kind, DryRun: r.DryRun}.Command()
	m.waitTime.WithLabelValues(tool, kind).Observe(max(0, time.Since(r.Submitted.At)).Seconds())
}

// ended counts the update that the result of an activity, which began at a time, says has ended. Recovery may find one
// that had ended, and was counted, before.
func (m *Metrics) ended(result any, begun time.Time) {
	info, ok := deployments.EndedUpdate(result)
	if !ok {
		return
	}
	tool := toolOurs
	switch r := result.(type) {
	case deployments.LeaseEnded:
		tool = toolPulumi
	case deployments.Recovered:
		if info.Ended.Before(begun) {
			return
		}
		if r.Request.Lease != nil {
			tool = toolPulumi
		}
		m.recovered.Inc()
	}
	m.update(tool, info)
}

// PreviewEnded counts a preview of the stock CLI, which no worker takes part in.
func (m *Metrics) PreviewEnded(info deployments.UpdateInfo) { m.update(toolPulumi, info) }

func (m *Metrics) update(tool string, info deployments.UpdateInfo) {
	m.updates.WithLabelValues(tool, info.Command(), info.Status).Inc()
	m.updateTime.WithLabelValues(tool, info.Command()).Observe(info.Took().Seconds())
}

// outcomeOf names how an attempt of a step ended.
func outcomeOf(finished deployments.StepOutput, err error) string {
	var app *temporal.ApplicationError
	switch {
	case err == nil:
		return string(finished.Outcome)
	case !errors.As(err, &app):
		return "error"
	}
	switch app.Type() {
	case deployments.ErrorNotDone, deployments.ErrorThrottled, deployments.ErrorPostponed:
		return "retried"
	case deployments.ErrorUnknownOutcome:
		return string(engine.OutcomeUnknown)
	case deployments.ErrorNotStarted:
		return "moved"
	}
	return "error"
}

// Collected counts what was removed of a stack.
func (m *Metrics) Collected(c statestore.Collected) {
	for what, n := range map[string]int{
		"checkpoint": c.Checkpoints, "update": c.Updates, "preview": c.Previews, "file": c.Files, "blob": c.Blobs,
	} {
		m.collected.WithLabelValues(what).Add(float64(n))
	}
}
