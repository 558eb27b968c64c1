package worker

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/sys/tracing"
)

// traces makes the spans of a worker. The request of an update says its place in a trace; the ids of the spans of the
// update follow from that, so that every worker that does something for it knows them. The workflows make none: a
// header tells their activities the place of the update, and what begins or ends an update makes the spans of it. Only
// a run of a Run makes its span itself, when it closes, and not in a replay.
type traces struct {
	interceptor.WorkerInterceptorBase
	tracing *tracing.Tracing
	// sealed is the converter of the headers of a workflow's activities of a type.
	sealed func(workflow, activity string) converter.DataConverter
}

// ofTrace is the content of the header.
type ofTrace string

// placeHeader is the header with the place of an update.
const placeHeader = "deployctl-trace"

// The places of the spans of an update.
func placeOfStack(place string, u deployments.UpdateName) string {
	return tracing.Within(place, tracing.SpanStack, u.String())
}
func placeOfUpdate(place string, u deployments.UpdateName) string {
	return tracing.Within(place, tracing.SpanUpdate, u.String())
}

// ofUpdateName returns the attributes of what is of an update.
func ofUpdateName(u deployments.UpdateName) []tracing.Attribute {
	return append(ofStackName(u.StackName), tracing.Update.Of(u.Version))
}

func ofStackName(s deployments.StackName) []tracing.Attribute {
	return []tracing.Attribute{tracing.Organization.Of(s.Organization), tracing.Stack.Of(s.Project + "/" + s.Stack)}
}

// InterceptWorkflow tells the activities of an update its place.
func (t *traces) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	return &tracedWorkflow{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next},
		traces: t}
}

type tracedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
	traces *traces
	place  string // of the update; empty: it is not exported, or this is no workflow of an update
}

// Init wraps the workflow's outbound calls.
func (w *tracedWorkflow) Init(calls interceptor.WorkflowOutboundInterceptor) error {
	return w.Next.Init(&tracedCalls{interceptor.WorkflowOutboundInterceptorBase{Next: calls}, w})
}

// ExecuteWorkflow runs a workflow.
func (w *tracedWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	if len(in.Args) != 1 {
		return w.Next.ExecuteWorkflow(ctx, in)
	}
	switch arg := in.Args[0].(type) {
	case deployments.UpdateInput:
		w.place = placeOfUpdate(arg.Request.Trace, arg.Update)
	case deployments.RunInput:
		w.place = placeOfUpdate(arg.Trace, arg.Update)
		result, err := w.Next.ExecuteWorkflow(ctx, in)
		if w.place != "" && !workflow.IsReplaying(ctx) {
			w.addRun(ctx, arg.Update, err)
		}
		return result, err
	}
	return w.Next.ExecuteWorkflow(ctx, in)
}

// addRun makes the span of a run of a Run, which follows the one that it continues.
func (w *tracedWorkflow) addRun(ctx workflow.Context, u deployments.UpdateName, err error) {
	info, class := workflow.GetInfo(ctx), ""
	if !workflow.IsContinueAsNewError(err) {
		class = classOf(err)
	}
	run := tracing.Whole{
		As: tracing.Within(w.place, tracing.SpanRun, info.WorkflowExecution.RunID), In: w.place, Name: tracing.SpanRun,
		Kind: tracing.Internal, Begun: info.WorkflowStartTime, Ended: workflow.Now(ctx), Class: class,
		Attributes: append(ofUpdateName(u), tracing.TemporalRun.Of(info.WorkflowExecution.RunID)),
	}
	if info.ContinuedExecutionRunID != "" {
		run.After = tracing.Within(w.place, tracing.SpanRun, info.ContinuedExecutionRunID)
	}
	w.traces.tracing.Add(run)
}

type tracedCalls struct {
	interceptor.WorkflowOutboundInterceptorBase
	of *tracedWorkflow
}

// ExecuteActivity schedules an activity.
func (c *tracedCalls) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	header, has := interceptor.WorkflowHeader(ctx), spanned[deployments.PresentName(name)]
	if header != nil && c.of.place != "" && has {
		data := c.of.traces.sealed(workflow.GetInfo(ctx).WorkflowExecution.ID, name)
		if place, err := data.ToPayload(ofTrace(c.of.place)); err == nil {
			header[placeHeader] = place
		}
	}
	return c.Next.ExecuteActivity(ctx, name, args...)
}

// spanned are the activities of updates that have spans.
var spanned = map[string]bool{
	deployments.ActivityRunProgram: true, deployments.ActivityPlanResources: true, deployments.ActivityPlanCascade: true,
	deployments.ActivityCompareProviders: true, deployments.ActivityRunHook: true, deployments.ActivityAnalyzeStack: true,
	deployments.ActivityStep: true, deployments.ActivityRefreshResources: true, deployments.ActivitySettle: true,
	deployments.ActivityAskFormerWorker: true, deployments.ActivityCommitUpdate: true,
}

// InterceptActivity makes the span of an activity.
func (t *traces) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &tracedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, t}
}

type tracedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	traces *traces
}

// ExecuteActivity runs an activity within its span, if it has one, and makes the spans of what begins or ends with it.
func (a *tracedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if len(in.Args) != 1 {
		return a.Next.ExecuteActivity(ctx, in)
	}
	begun := time.Now()
	ctx, span := a.begin(ctx, in.Args[0])
	result, err := a.Next.ExecuteActivity(ctx, in)
	if span != nil {
		if outcome := outcomeOf(result, err); outcome != "" {
			span.Set(tracing.Outcome.Of(outcome))
		}
		span.End(errorOf(result, err))
	}
	if err == nil {
		a.traces.begunOrEnded(in.Args[0], result, begun)
	}
	return result, err
}

// begin begins the span of an activity: within its update, or of what asks for one without a person.
func (a *tracedActivity) begin(ctx context.Context, arg any) (context.Context, *tracing.Span) {
	info := activity.GetInfo(ctx)
	attempt := tracing.Attempt.Int(int(info.Attempt))
	switch arg := arg.(type) {
	case deployments.SubmitInput:
		return a.traces.tracing.Start(ctx, tracing.SpanSchedule, tracing.Internal,
			append(ofStackName(arg.Schedule.Name.StackName), attempt)...)
	case deployments.SubmitDeploymentInput:
		return a.traces.tracing.Start(ctx, tracing.SpanDeployment, tracing.Internal,
			append(ofStackName(arg.Name.StackName), attempt)...)
	}
	place := a.place(ctx, info)
	d, ok := describe(arg)
	if place == "" || !ok {
		return ctx, nil
	}
	within := tracing.At(ctx, place)
	attributes := append(append(ofUpdateName(d.update), attempt), d.attributes...)
	if d.epoch == 0 {
		return a.traces.tracing.Start(within, d.name, tracing.Internal, attributes...)
	}
	epoch := func(n int) string { return tracing.Within(place, tracing.SpanProgram, strconv.Itoa(n)) }
	ctx, span := a.traces.tracing.StartAs(within, epoch(d.epoch), d.name, tracing.Internal, attributes...)
	if d.epoch > 1 {
		span.Follows(epoch(d.epoch - 1))
	}
	return ctx, span
}

// place returns the place that the header of an activity names. Without one that can be read there is none: a span is
// no reason not to do something.
func (a *tracedActivity) place(ctx context.Context, info activity.Info) string {
	header := interceptor.Header(ctx)[placeHeader]
	if header == nil {
		return ""
	}
	data := a.traces.sealed(info.WorkflowExecution.ID, info.ActivityType.Name)
	var place ofTrace
	if data.FromPayload(header, &place) != nil {
		return ""
	}
	return string(place)
}

// described is what the span of an activity says. An epoch is that of a program.
type described struct {
	name       string
	update     deployments.UpdateName
	attributes []tracing.Attribute
	epoch      int
}

// describe describes an activity of an update by its input; false if it has no span.
func describe(arg any) (d described, ok bool) {
	switch arg := arg.(type) {
	case deployments.ProgramInput:
		return described{tracing.SpanProgram, arg.Update, []tracing.Attribute{tracing.Epoch.Int(arg.Epoch)}, arg.Epoch}, true
	case deployments.PlanInput:
		return described{tracing.SpanPlan, arg.Update, []tracing.Attribute{tracing.Count.Int(len(arg.Plans))}, 0}, true
	case deployments.CascadeInput:
		return described{name: tracing.SpanCascade, update: arg.Update}, true
	case deployments.CompareInput:
		return described{name: tracing.SpanCompare, update: arg.Update}, true
	case deployments.HookInput:
		return described{name: tracing.SpanHook, update: arg.Update}, true
	case deployments.AnalyzeStackInput:
		return described{name: tracing.SpanAnalyze, update: arg.Update}, true
	case deployments.StepInput:
		return described{tracing.SpanStep + " " + string(arg.Step.Kind), arg.Update, ofResource(arg.Step), 0}, true
	case deployments.RefreshInput:
		return described{tracing.SpanRefresh, arg.Update, []tracing.Attribute{tracing.Count.Int(len(arg.Steps))}, 0}, true
	case deployments.SettleInput:
		return described{tracing.SpanSettle, arg.Update, ofResource(arg.Settle.Step), 0}, true
	case deployments.CommitInput:
		return described{name: tracing.SpanCommit, update: arg.Update}, true
	}
	return d, false
}

// ofResource returns the attributes of what is of a resource: its type and name, and nothing else of it.
func ofResource(s engine.Step) []tracing.Attribute {
	return []tracing.Attribute{tracing.ResourceType.Of(string(s.Type)), tracing.ResourceName.Of(snapshot.NameOf(s.URN))}
}

// outcomeOf returns what a step or a settlement came to; "" for other activities.
func outcomeOf(result any, err error) string {
	if app := (*temporal.ApplicationError)(nil); errors.As(err, &app) && app.Type() == deployments.ErrorUnknownOutcome {
		return string(engine.OutcomeUnknown)
	}
	finished, _ := finishedOf(result, err)
	return string(finished.Outcome)
}

// finishedOf returns the result of a step or a settlement, which is a detail of its error if it failed.
func finishedOf(result any, err error) (engine.StepFinished, bool) {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		var out deployments.StepOutput
		ok := app.Type() == deployments.ErrorStepFailed && app.HasDetails() && app.Details(&out) == nil
		return out.StepFinished, ok
	}
	switch r := result.(type) {
	case deployments.StepOutput:
		return r.StepFinished, err == nil
	case engine.StepFinished:
		return r, err == nil
	}
	return engine.StepFinished{}, false
}

// errorOf returns the class of an activity's error: that of the provider's, where it is one.
func errorOf(result any, err error) string {
	finished, ok := finishedOf(result, err)
	switch {
	case !ok:
		return classOf(err)
	case finished.Outcome == engine.OutcomeDone:
		return ""
	case finished.Evidence != nil:
		return string(finished.Evidence.Class)
	}
	return string(finished.Outcome)
}

// classOf returns the class of an error of the service; never its text.
func classOf(err error) string {
	var app *temporal.ApplicationError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &app) && app.Type() != "":
		return app.Type()
	case temporal.IsCanceledError(err) || errors.Is(err, context.Canceled):
		return string(deployments.CodeCancelled)
	}
	return string(deployments.CodeInternal)
}

// begunOrEnded makes the spans of what the result of an activity, which began at a time, says has begun or ended.
func (t *traces) begunOrEnded(arg, result any, begun time.Time) {
	switch arg := arg.(type) {
	case deployments.ClaimInput:
		if claimed, _ := result.(deployments.Claimed); claimed.Worker != "" {
			t.claimed(arg, begun)
		}
	case deployments.UpdateInput: // of BeginLease
		t.taken(arg.Update, arg.Request)
	case deployments.Entry: // it never began
		t.tracing.Add(tracing.Whole{
			As: placeOfStack(arg.Info.Trace, arg.Info.Update), In: arg.Info.Trace, Name: tracing.SpanStack,
			Kind: tracing.Internal, Begun: arg.Info.Started, Ended: arg.Info.Ended,
			Attributes: append(ofUpdateName(arg.Info.Update), tracing.UpdateKind.Of(arg.Info.Command()),
				tracing.Result.Of(arg.Info.Status)),
		})
	case deployments.CommitInput, deployments.RecoverInput, deployments.LeaseEnd:
		// a recovery may find an update that had ended before
		if info, ok := deployments.EndedUpdate(result); ok && !info.Ended.Before(begun) {
			t.ended(info)
		}
	}
}

// taken makes the span of how long an update has waited for its stack and a worker.
func (t *traces) taken(u deployments.UpdateName, r deployments.UpdateRequest) {
	if r.Submitted == nil {
		return
	}
	kind := deployments.UpdateInfo{Kind: r.Kind, DryRun: r.DryRun}.Command()
	t.tracing.Add(tracing.Whole{
		As: placeOfStack(r.Trace, u), In: r.Trace, Name: tracing.SpanStack, Kind: tracing.Internal,
		Begun: r.Submitted.At, Ended: time.Now(), Attributes: append(ofUpdateName(u), tracing.UpdateKind.Of(kind)),
	})
}

// claimed makes the spans of a claim. One that is not the first goes on from the one before.
func (t *traces) claimed(in deployments.ClaimInput, begun time.Time) {
	if in.Number <= 1 {
		t.taken(in.Update, in.Request)
	}
	update := placeOfUpdate(in.Request.Trace, in.Update)
	claim := func(n int) string { return tracing.Within(update, tracing.SpanClaim, strconv.Itoa(n)) }
	w := tracing.Whole{
		As: claim(in.Number), In: update, Name: tracing.SpanClaim, Kind: tracing.Internal, Begun: begun, Ended: time.Now(),
		Attributes: append(ofUpdateName(in.Update), tracing.Claim.Int(in.Number)),
	}
	if in.Number > 1 {
		w.After = claim(in.Number - 1)
	}
	t.tracing.Add(w)
}

// ended makes the span of an update.
func (t *traces) ended(info deployments.UpdateInfo) {
	class := ""
	if info.Status == string(engine.StatusFailed) {
		class = string(info.Code)
		if class == "" {
			class = info.Status
		}
	}
	t.tracing.Add(tracing.Whole{
		As: placeOfUpdate(info.Trace, info.Update), In: placeOfStack(info.Trace, info.Update), Name: tracing.SpanUpdate,
		Kind: tracing.Internal, Begun: info.Started, Ended: info.Ended, Class: class,
		Attributes: append(ofUpdateName(info.Update), tracing.UpdateKind.Of(info.Command()),
			tracing.Result.Of(info.Status), tracing.Resources.Int(info.Resources)),
	})
}
