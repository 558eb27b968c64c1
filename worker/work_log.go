package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/tracing"
)

// workLog logs what a worker does, one line for each begin and end: of updates, of those of the stock CLI, of
// recoveries, runs of schedules, and deployments; and each attempt to tell a webhook that failed. It logs names and
// results, never values.
type workLog struct {
	interceptor.WorkerInterceptorBase
	log *slog.Logger
}

// InterceptActivity is called once for every activity that runs.
func (w *workLog) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &loggedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, w.log}
}

type loggedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	log *slog.Logger
}

// ExecuteActivity runs an activity and logs what begins or ends with it.
func (l *loggedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	if len(in.Args) != 1 {
		return l.Next.ExecuteActivity(ctx, in)
	}
	log := l.log.With("run", info.WorkflowExecution.RunID)
	if name, ok := in.Args[0].(deployments.DeploymentName); ok && info.Attempt <= 1 &&
		info.ActivityType.Name == deployments.ActivityPrepareDeployment {
		ofStack(log, name.StackName).Info("deployment begins", "deployment", name.Number)
	}
	result, err := l.Next.ExecuteActivity(ctx, in)
	if err != nil {
		failed(log, in.Args[0], info.Attempt, err)
	} else {
		succeeded(log, tracing.Place(ctx), in.Args[0], result)
	}
	return result, err
}

// ofStack returns a log about a stack.
func ofStack(log *slog.Logger, s deployments.StackName) *slog.Logger {
	return log.With("organization", s.Organization, "stack", s.Project+"/"+s.Stack)
}

// ofUpdate returns a log about an update.
func ofUpdate(log *slog.Logger, u deployments.UpdateName) *slog.Logger {
	return ofStack(log, u.StackName).With("update", u.Version)
}

// inTrace returns a log about what is in the trace of a place.
func inTrace(log *slog.Logger, place string) *slog.Logger {
	if id := tracing.ID(place); id != "" {
		return log.With("trace_id", id)
	}
	return log
}

// failed logs an attempt that failed, if nothing else says so: all others are logged by the SDK, with their retries.
func failed(log *slog.Logger, arg any, attempt int32, err error) {
	switch arg := arg.(type) {
	case deployments.DeliverInput:
		webhookFailed(log, arg, int(attempt), err)
	case deployments.SubmitInput:
		ofSchedule(log, arg).Warn("the update of a schedule was not accepted", "attempt", attempt, "error", reasonOf(err))
	}
}

func webhookFailed(log *slog.Logger, in deployments.DeliverInput, attempt int, err error) {
	log.Warn("a webhook was not told", "webhook", in.Webhook.Name, "organization", in.Webhook.Scope.Organization,
		"event", in.Event.ID, "kind", in.Event.Kind, "attempt", attempt, "error", reasonOf(err))
}

// reasonOf returns the text of an error without what Temporal adds.
func reasonOf(err error) string {
	if app := (*temporal.ApplicationError)(nil); errors.As(err, &app) {
		return app.Message()
	}
	return err.Error()
}

func ofSchedule(log *slog.Logger, in deployments.SubmitInput) *slog.Logger {
	name := in.Schedule.Name
	return ofStack(log, name.StackName).With("schedule", name.Name, "kind", string(in.Schedule.Kind), "request_id",
		in.RequestID)
}

// succeeded logs what begins or has ended with an activity, which has a place in a trace.
func succeeded(log *slog.Logger, place string, arg, result any) {
	switch arg := arg.(type) {
	case deployments.ClaimInput:
		claimed, _ := result.(deployments.Claimed)
		switch {
		case claimed.Worker == "": // others claim it
		case arg.Number > 1:
			begins(log, arg.Update, arg.Request, "update goes on here", "claim", arg.Number)
		default:
			begins(log, arg.Update, arg.Request, "update begins")
		}
	case deployments.CommitInput:
		ended(log, result, "update ended")
	case deployments.RecoverInput:
		ended(log, result, "update recovered")
	case deployments.Entry:
		ended(log, arg.Info, "update ended before it began")
	case deployments.UpdateInput: // of BeginLease alone
		begins(log, arg.Update, arg.Request, "update of a client begins")
	case deployments.LeaseEnd:
		ended(log, result, "update of a client ended")
	case deployments.SubmitInput:
		accepted, _ := result.(deployments.Accepted)
		inTrace(ofSchedule(log, arg), place).Info("schedule runs", "update", accepted.Update.Version)
	case deployments.DeliverInput:
		if d, _ := result.(deployments.WebhookDelivery); d.Error != "" {
			webhookFailed(log, arg, d.Attempt, errors.New(d.Error))
		}
	case deployments.SubmitDeploymentInput:
		u, _ := result.(deployments.UpdateName)
		inTrace(ofUpdate(log, u), place).Info("update of a deployment", "deployment", arg.Name.Number, "request_id",
			arg.Request.RequestID)
	case deployments.EndDeploymentInput:
		ofStack(log, arg.Name.StackName).Info("deployment ended", "deployment", arg.Name.Number, "result",
			string(arg.Status))
	}
}

func begins(log *slog.Logger, u deployments.UpdateName, r deployments.UpdateRequest, what string, more ...any) {
	kind := deployments.UpdateInfo{Kind: r.Kind, DryRun: r.DryRun}.Command()
	inTrace(ofUpdate(log, u), r.Trace).With(more...).Info(what, "kind", kind, "initiator", r.Initiator, "request_id",
		r.RequestID)
}

// ended logs the end of an update, if the result of an activity describes one.
func ended(log *slog.Logger, result any, what string) {
	info, ok := deployments.EndedUpdate(result)
	if !ok {
		return
	}
	log = inTrace(ofUpdate(log, info.Update), info.Trace).With("kind", info.Command(), "result", info.Status, "took",
		info.Took().Round(time.Millisecond).String(), "resources", info.Resources)
	if info.Next != "" {
		log = log.With("next", info.Next)
	}
	log.Info(what)
}
