package worker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/internal/testkit/collectortest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// tracedPlace is the place of the call that has submitted tracedUpdate.
const tracedPlace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

var tracedUpdate = deployments.UpdateName{StackName: deployments.StackName{Organization: "acme", Project: "shop",
	Stack: "prod"}, Version: "57"}

// tracedWorker is what makes the spans of a worker, and what takes them.
type tracedWorker struct {
	*traces
	collector *collectortest.Collector
}

func newTracedWorker(t *testing.T) *tracedWorker {
	t.Helper()
	collector := collectortest.Start(t)
	traced, err := tracing.Open(tracing.Options{Endpoint: collector.URL, Sample: 1, Service: "test"})
	must(t, err)
	fence := &runFence{data: converterOf(t, "ours", "")}
	return &tracedWorker{&traces{tracing: traced, sealed: fence.at}, collector}
}

// spans ends the worker, and returns the spans that it has made.
func (w *tracedWorker) spans(t *testing.T) []collectortest.Span {
	t.Helper()
	w.tracing.Close(waittest.Context(t))
	collectortest.Check(t, w.collector.Spans(), tracing.Table)
	return w.collector.Spans()
}

// activity carries out an activity that comes to a result, with the header of an update.
func (w *tracedWorker) activity(t *testing.T, name string, in, result any, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(waittest.Patience)
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{w.traces,
		&replaced{result: result, err: err}}})
	update := ofTrace(placeOfUpdate(tracedPlace, tracedUpdate))
	place, sealing := w.sealed("default-test-workflow-id", name).ToPayload(update)
	must(t, sealing)
	env.SetHeader(&commonpb.Header{Fields: map[string]*commonpb.Payload{placeHeader: place}})
	env.RegisterActivityWithOptions(inputs[name], activity.RegisterOptions{Name: name})
	_, _ = env.ExecuteActivity(name, in)
}

// inputs are activities that give the SDK the types of their inputs.
var inputs = map[string]any{
	deployments.ActivityClaimStack:    func(context.Context, deployments.ClaimInput) error { return nil },
	deployments.ActivityRunProgram:    func(context.Context, deployments.ProgramInput) error { return nil },
	deployments.ActivityStep:          func(context.Context, deployments.StepInput) error { return nil },
	deployments.ActivitySettle:        func(context.Context, deployments.SettleInput) error { return nil },
	deployments.ActivityCommitUpdate:  func(context.Context, deployments.CommitInput) error { return nil },
	deployments.ActivityRecoverUpdate: func(context.Context, deployments.RecoverInput) error { return nil },
	deployments.ActivityAddToHistory:  func(context.Context, deployments.Entry) error { return nil },
}

// replaced is an interceptor that does nothing but return what an activity comes to.
type replaced struct {
	interceptor.WorkerInterceptorBase
	result any
	err    error
}

type replacedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	by *replaced
}

func (r *replaced) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &replacedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, r}
}

func (r *replacedActivity) ExecuteActivity(context.Context, *interceptor.ExecuteActivityInput) (any, error) {
	return r.by.result, r.by.err
}

func TestAnUpdateThatFailsOverGoesOnInItsTrace(t *testing.T) {
	w := newTracedWorker(t)
	request := deployments.UpdateRequest{Kind: engine.KindUp, Trace: tracedPlace,
		Submitted: &deployments.Submission{At: time.Now().Add(-time.Minute)}}
	for n := 1; n <= 2; n++ {
		w.activity(t, deployments.ActivityClaimStack,
			deployments.ClaimInput{Update: tracedUpdate, Request: request, Number: n},
			deployments.Claimed{Worker: "here"}, nil)
		w.activity(t, deployments.ActivityRunProgram, deployments.ProgramInput{Update: tracedUpdate, Epoch: n},
			deployments.ProgramOutput{Lost: n == 1}, nil)
	}
	w.activity(t, deployments.ActivityCommitUpdate, deployments.CommitInput{Update: tracedUpdate}, deployments.UpdateInfo{
		Update: tracedUpdate, Kind: engine.KindUp, Status: "succeeded", Trace: tracedPlace, Resources: 3,
		Started: time.Now().Add(-time.Second), Ended: time.Now().Add(time.Second)}, nil)
	by := map[string][]collectortest.Span{}
	for _, span := range w.spans(t) {
		if span.Trace != tracing.ID(tracedPlace) {
			t.Errorf("%s is in the trace %s", span.Name, span.Trace)
		}
		by[span.Name] = append(by[span.Name], span)
	}
	if names := slices.Sorted(maps.Keys(by)); !slices.Equal(names, []string{"claim", "commit", "program", "stack",
		"update"}) || len(by["stack"])+len(by["update"]) != 2 {
		t.Fatalf("the spans are %v", by)
	}
	stack, update := by["stack"][0], by["update"][0]
	if stack.Parent != "00f067aa0ba902b7" || update.Parent != stack.ID || update.Attributes["deployctl.result"] !=
		"succeeded" || stack.Ended-stack.Began < uint64(time.Minute) {
		t.Errorf("the update is %+v in %+v", update, stack)
	}
	for _, name := range []string{"claim", "program"} {
		first, second := by[name][0], by[name][1]
		if first.Parent != update.ID || second.Parent != update.ID || len(first.Links) != 0 ||
			!slices.Equal(second.Links, []string{first.ID}) {
			t.Errorf("a %s follows another one: %+v, %+v", name, first, second)
		}
	}
}

func TestASpanOfAStepHasItsResourceAndItsOutcomeAndNoText(t *testing.T) {
	const secret = "needle-of-a-step"
	step := deployments.StepInput{Update: tracedUpdate, Step: engine.Step{Kind: engine.StepCreate, Type: "aws:s3:Bucket",
		URN: "urn:pulumi:prod::shop::aws:s3:Bucket::logs", Old: &engine.State{ID: secret}}, Round: 1}
	finished := func(outcome engine.Outcome, class engine.ErrorClass) engine.StepFinished {
		f := engine.StepFinished{Outcome: outcome, Error: secret, ID: secret, InitErrors: []string{secret}}
		if class != "" {
			f.Evidence = &engine.Evidence{Class: class, By: secret}
		}
		return f
	}
	for name, c := range map[string]struct {
		result         any
		err            error
		outcome, class string
	}{
		"done":   {deployments.StepOutput{StepFinished: finished(engine.OutcomeDone, "")}, nil, "done", ""},
		"failed": {deployments.StepOutput{StepFinished: finished(engine.OutcomeFailed, "quota")}, nil, "failed", "quota"},
		"failed, which is an error": {nil, temporal.NewNonRetryableApplicationError(secret, deployments.ErrorStepFailed, nil,
			deployments.StepOutput{StepFinished: finished(engine.OutcomeFailed, "quota")}), "failed", "quota"},
		"not known": {nil, temporal.NewNonRetryableApplicationError(secret, deployments.ErrorUnknownOutcome, nil), "unknown",
			deployments.ErrorUnknownOutcome},
		"throttled": {nil, temporal.NewApplicationError(secret, deployments.ErrorThrottled), "",
			deployments.ErrorThrottled},
		"broken":         {nil, errors.New(secret), "", string(deployments.CodeInternal)},
		"cancelled":      {nil, temporal.NewCanceledError(secret), "", string(deployments.CodeCancelled)},
		"of a settle":    {finished(engine.OutcomeUndecidable, ""), nil, "undecidable", "undecidable"},
		"settled, found": {finished(engine.OutcomeDone, ""), nil, "done", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTracedWorker(t)
			want := "step create"
			if strings.Contains(name, "settle") {
				want = "settle"
				w.activity(t, deployments.ActivitySettle, deployments.SettleInput{Update: tracedUpdate,
					Settle: engine.Settle{Step: step.Step}}, c.result, c.err)
			} else {
				w.activity(t, deployments.ActivityStep, step, c.result, c.err)
			}
			spans := w.spans(t)
			if len(spans) != 1 || spans[0].Name != want || spans[0].Failed != (c.class != "") {
				t.Fatalf("the spans are %+v", spans)
			}
			has := spans[0].Attributes
			for key, value := range map[string]string{
				"deployctl.resource.type": "aws:s3:Bucket", "deployctl.resource.name": "logs", "deployctl.organization": "acme",
				"deployctl.stack": "shop/prod", "deployctl.update": "57", "deployctl.attempt": "1",
				"deployctl.outcome": c.outcome, "error.type": c.class,
			} {
				if has[key] != value {
					t.Errorf("%s is %q", key, has[key])
				}
			}
			if text := strings.Join(w.collector.Texts(), ""); strings.Contains(text, secret) {
				t.Errorf("a secret is exported:\n%s", text)
			}
		})
	}
}

func TestAnUpdateThatIsRecoveredOrNeverBeganHasItsSpan(t *testing.T) {
	w := newTracedWorker(t)
	info := deployments.UpdateInfo{Update: tracedUpdate, Kind: engine.KindUp, Status: "failed", Error: "a text",
		Trace: tracedPlace, Started: time.Now().Add(-time.Hour), Ended: time.Now().Add(time.Hour)}
	w.activity(t, deployments.ActivityRecoverUpdate, deployments.RecoverInput{Update: tracedUpdate},
		deployments.Recovered{UpdateInfo: info}, nil)
	before := info
	before.Ended = time.Now().Add(-time.Minute)
	w.activity(t, deployments.ActivityRecoverUpdate, deployments.RecoverInput{Update: tracedUpdate},
		deployments.Recovered{UpdateInfo: before}, nil)
	before.Status = "cancelled"
	w.activity(t, deployments.ActivityAddToHistory, deployments.Entry{Info: before}, nil, nil)
	var said []string
	for _, span := range w.spans(t) {
		said = append(said, span.Name+" "+span.Attributes["deployctl.result"]+" "+span.Attributes["error.type"])
	}
	if slices.Sort(said); !slices.Equal(said, []string{"stack cancelled ", "update failed failed"}) {
		t.Errorf("the spans are %q", said)
	}
}

func TestARunTellsItsActivitiesThePlaceAndFollowsTheRunThatItContinues(t *testing.T) {
	for name, trace := range map[string]string{"an update that is exported": tracedPlace, "one that is not": ""} {
		t.Run(name, func(t *testing.T) {
			w := newTracedWorker(t)
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestWorkflowEnvironment()
			env.SetTestTimeout(waittest.Patience)
			env.SetContinuedExecutionRunID("the-run-before")
			env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: waittest.Patience,
				Interceptors: []interceptor.WorkerInterceptor{w.traces}})
			carried := false
			env.RegisterActivityWithOptions(func(ctx context.Context, _ deployments.StepInput) error {
				carried = tracing.Of(ctx) != nil
				return nil
			}, activity.RegisterOptions{Name: deployments.ActivityStep})
			env.RegisterWorkflowWithOptions(func(ctx workflow.Context, in deployments.RunInput) error {
				ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: ample})
				step := deployments.StepInput{Update: in.Update, Step: engine.Step{Kind: engine.StepCreate}}
				if err := workflow.ExecuteActivity(ctx, deployments.ActivityStep, step).Get(ctx, nil); err != nil {
					return err
				}
				return workflow.NewContinueAsNewError(ctx, deployments.WorkflowRun, in)
			}, workflow.RegisterOptions{Name: deployments.WorkflowRun})
			env.ExecuteWorkflow(deployments.WorkflowRun, deployments.RunInput{Update: tracedUpdate, Trace: trace})
			if err := env.GetWorkflowError(); !workflow.IsContinueAsNewError(err) {
				t.Fatal(err)
			}
			spans := w.spans(t)
			if trace == "" {
				if carried || len(spans) > 0 {
					t.Errorf("the activity has a span: %t; the spans are %+v", carried, spans)
				}
				return
			}
			update := placeOfUpdate(trace, tracedUpdate)
			before := tracing.Within(update, tracing.SpanRun, "the-run-before")
			var run collectortest.Span
			for _, span := range spans {
				if span.Name == "run" {
					run = span
				}
				if !strings.Contains(update, "-"+span.Parent+"-") {
					t.Errorf("%s is not in the update", span.Name)
				}
			}
			if !carried || len(spans) != 2 || run.Failed || len(run.Links) != 1 ||
				!strings.Contains(before, "-"+run.Links[0]+"-") {
				t.Errorf("the spans are %+v", spans)
			}
		})
	}
}

func TestAHeaderThatIsNotSealedForAnActivityMakesNoSpanAndStopsNothing(t *testing.T) {
	w := newTracedWorker(t)
	plain, err := converter.GetDefaultDataConverter().ToPayload(tracedPlace)
	must(t, err)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(waittest.Patience)
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{w.traces}})
	env.SetHeader(&commonpb.Header{Fields: map[string]*commonpb.Payload{placeHeader: plain}})
	env.RegisterActivityWithOptions(inputs[deployments.ActivityStep],
		activity.RegisterOptions{Name: deployments.ActivityStep})
	if _, err := env.ExecuteActivity(deployments.ActivityStep, deployments.StepInput{Update: tracedUpdate}); err != nil {
		t.Fatal(err)
	}
	if spans := w.spans(t); len(spans) > 0 {
		t.Errorf("the spans are %+v", spans)
	}
}
