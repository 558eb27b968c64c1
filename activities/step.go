package activities

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/panics"
	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/deployctl/deployctl/internal/properties"
	"github.com/deployctl/deployctl/internal/ratelimit"
	"github.com/deployctl/deployctl/internal/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// Step makes one call that may change the world, or reads. Its result is a definite end: done, partial, failed, or
// cancelled before it was sent. Its errors are ErrorNotDone, ErrorThrottled and ErrorPostponed (make it again),
// ErrorUnknownOutcome (find out first), ErrorNotStarted, and those of the service.
func (a *Activities) Step(ctx context.Context, in deployments.StepInput) (deployments.StepOutput, error) {
	s, err := a.hosted(ctx, in.Update, in.Base)
	if err != nil {
		result, err := unsent(engine.StepFinished{}, err)
		result.Op = in.Step.Op
		out := deployments.StepOutput{StepFinished: result}
		if err == nil {
			err = unsuccessful(ctx, out)
		}
		return out, failure(err)
	}
	at := &attempt{session: s, step: in.Step, round: in.Round, heartbeat: startHeartbeat(ctx, a.Heart),
		over: make(chan struct{})}
	defer at.heartbeat.stop()
	defer func() {
		if !at.overdue {
			at.end()
		}
	}()

	var result engine.StepFinished
	if wait := rest(in.Round); wait > 0 && activity.GetInfo(ctx).Attempt == 1 {
		err = postponed("it was lost before, and had no effect", wait)
	} else {
		result, err = at.guarded(ctx)
	}
	if err != nil && !at.sent {
		result, err = unsent(result, err)
	}
	if interrupted(err) && !at.heartbeat.cancelRequested(ctx) {
		err = postponed("the worker stops", 0)
	} else if interrupted(err) {
		result, err = engine.StepFinished{Outcome: engine.OutcomeCancelled}, nil
	} else if reason, ok := turnAway(err); ok {
		result, err = at.turnedAway(ctx, reason)
	}
	hide := at.redactResult(ctx, &result)
	out := deployments.StepOutput{StepFinished: result}
	switch {
	case err != nil:
	case at.heartbeat.lastBeatRejected() || errors.Is(ctx.Err(), context.DeadlineExceeded):
		at.leave(ctx, result)
	case in.Step.Answer != nil && result.Outcome == engine.OutcomeDone:
		reply := *in.Step.Answer
		reply.ID, reply.Object = result.ID, result.Outputs
		out.Answered, out.Messages = s.replyEarly(ctx, reply)
	}
	if at.sent && (err == nil || isType(err, deployments.ErrorUnknownOutcome)) {
		s.spent.Store(in.Step.Op, in.Round)
	}
	if err == nil {
		err = unsuccessful(ctx, out)
	}
	return out, hide.failure(err)
}

// attempt is one attempt of a step.
type attempt struct {
	session   *session
	step      engine.Step
	round     int
	heartbeat *heartbeater
	limiter   *ratelimit.Limiter // of the account that its provider calls
	pause     time.Duration      // before the first repetition of a throttled call; 0: the retry policy decides

	provider *pluginhost.Provider // of its call
	until    time.Time            // when its time is over
	overdue  bool                 // its call was not answered until then, and goes on
	sent     bool                 // its call was made, which may have an effect
	keeping  atomic.Bool          // it has an answer, and waits for the store
	over     chan struct{}        // closed when nothing comes of it any more
}

// end says that nothing comes of the attempt any more.
func (at *attempt) end() {
	at.session.sent.CompareAndDelete(at.step.Op, at)
	close(at.over)
}

// redactResult makes a result that of the step, without secrets, and gives what hides them.
func (at *attempt) redactResult(ctx context.Context, result *engine.StepFinished) redactor {
	result.Op = at.step.Op
	hide := at.session.redactor(ctx, bagsOf(at.step.Provider, at.step.New, at.step.Old)...)
	hide.step(result)
	cutStep(ctx, result)
	return hide
}

// rest is the pause before a round of a step. The second begins at once: most steps are lost with a worker, and that
// once.
func rest(round int) time.Duration {
	if round < 3 {
		return 0
	}
	return time.Second << min(round-3, 6)
}

// leave writes the result where settling looks first, for the case that it cannot be reported. It waits for the store
// until the worker stops, and then for a while.
func (at *attempt) leave(ctx context.Context, result engine.StepFinished) {
	at.keeping.Store(true)
	defer at.keeping.Store(false)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		select {
		case <-at.heartbeat.stopping:
			_ = pause(ctx, lastLeave)
			cancel()
		case <-ctx.Done():
		}
	}()
	at.session.leaveOutcome(ctx, at.round, result)
}

// lastLeave is how long a worker that stops tries to store what a step came to.
const lastLeave = 20 * time.Second

func (at *attempt) run(ctx context.Context) (engine.StepFinished, error) {
	if err := at.session.parallel.Acquire(ctx, at.heartbeat.cancelled); err != nil {
		return engine.StepFinished{}, notCalled(err)
	}
	defer at.session.parallel.Release()
	if token.IsProvider(at.step.Type) {
		return at.configure(ctx)
	}
	if at.step.Provider == nil { // a component is nothing but its children
		return at.finish(ctx, engine.StepFinished{Outcome: engine.OutcomeDone}, nil, nil)
	}
	account, err := at.session.accountOf(ctx, at.step.Provider)
	if err != nil {
		return at.providerUnavailable(err)
	}
	provider, err := at.session.open(ctx, account)
	if err != nil {
		return at.providerUnavailable(err)
	}
	at.limiter = account.limiter
	switch at.step.Kind {
	case engine.StepCreate, engine.StepCreateReplacement:
		return at.create(ctx, provider)
	case engine.StepUpdate:
		return at.update(ctx, provider)
	case engine.StepDelete, engine.StepDeleteReplaced:
		return at.delete(ctx, provider)
	case engine.StepRead, engine.StepReadReplacement:
		return at.read(ctx, provider)
	case engine.StepRefresh:
		return at.refresh(ctx, provider)
	case engine.StepImport, engine.StepImportReplacement:
		return at.adopt(ctx, provider)
	}
	return engine.StepFinished{}, deployments.Errorf(deployments.CodeInternal,
		"a step of kind %q is not for a provider", at.step.Kind)
}

// providerUnavailable ends a step whose provider cannot be started or configured: nothing was done. Transient errors
// are retried.
func (at *attempt) providerUnavailable(err error) (engine.StepFinished, error) {
	var own *serviceError
	switch {
	case interrupted(err):
		return engine.StepFinished{}, err
	case isInternal(err, &own):
		return engine.StepFinished{}, own.err
	case isTransient(err):
		return engine.StepFinished{}, notDone(pluginhost.ErrorText(err), pluginhost.RetryAfter(err))
	}
	return failed(pluginhost.ErrorText(err)), nil
}

// interrupted tells whether something ended with the activity, before anything was sent that could have an effect.
func interrupted(err error) bool {
	return temporal.IsCanceledError(err) || errors.Is(err, context.Canceled)
}

func failed(text string) engine.StepFinished {
	return engine.StepFinished{Outcome: engine.OutcomeFailed, Error: text}
}

// mutate makes a call that may change the world, if this attempt still may, and concludes from its answer. The call
// goes on whatever happens to the context; only a request to cancel reaches the provider. After the step's time the
// activity does not wait for the answer, and others get the step's turn; but settling does, which finds there what it
// came to.
func mutate[T any](
	ctx context.Context, at *attempt, p *pluginhost.Provider,
	call func(context.Context) (T, error), conclude func(T, error) (engine.StepFinished, error),
) (engine.StepFinished, error) {
	if !at.step.Preview {
		if err := at.keepRate(ctx); err != nil {
			return engine.StepFinished{}, err
		}
		if err := at.heartbeat.holdsLease(ctx); err != nil {
			return engine.StepFinished{}, err
		}
		at.provider = p
		at.until, _ = ctx.Deadline()
		if round, spent := at.session.spent.Load(at.step.Op); spent && round.(int) >= at.round {
			return engine.StepFinished{}, unknownOutcome("an earlier attempt was answered already")
		}
		// somebody has told the server that it ended
		if _, underWay := at.session.sent.LoadOrStore(at.step.Op, at); underWay {
			return engine.StepFinished{}, unknownOutcome("an earlier attempt is still under way")
		}
		at.sent = true
	}
	var value T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer panics.Into(&err, "making "+string(at.step.URN))
		value, err = call(context.WithoutCancel(ctx))
	}()
	answered := func() (engine.StepFinished, error) {
		if defect := (*panics.PanicError)(nil); errors.As(err, &defect) {
			return engine.StepFinished{}, defect
		}
		if !at.step.Preview {
			at.observe(err)
		}
		return conclude(value, err)
	}
	if at.wait(ctx, p, done) {
		return answered()
	}
	at.overdue = true
	go func() {
		defer at.end()
		<-done
		_ = panics.Do("reading the late answer to "+string(at.step.URN), func() error {
			result, err := answered()
			if err == nil {
				ctx := context.WithoutCancel(ctx)
				at.redactResult(ctx, &result)
				at.leave(ctx, result)
			}
			return err
		})
	}()
	return engine.StepFinished{}, unknownOutcome("it was not answered in its time")
}

// keepRate waits until a call to the account may be made. If it fails, no call was made.
func (at *attempt) keepRate(ctx context.Context) error {
	err := notCalled(at.limiter.Wait(ctx, at.heartbeat.cancelled, at.session.request.Scheduled))
	switch {
	case !interrupted(err):
		return err
	case at.heartbeat.cancelRequested(ctx):
		return temporal.NewCanceledError()
	}
	return postponed("the worker stops", 0)
}

// notCalled translates the error of a wait that ended before the provider was called.
func notCalled(err error) error {
	var later *ratelimit.Postponed
	switch {
	case errors.As(err, &later):
		return postponed(later.Reason, later.After)
	case errors.Is(err, ratelimit.ErrCancelled):
		return temporal.NewCanceledError()
	}
	return err
}

// observe reports to the limiter whether the provider's account throttled a call.
func (at *attempt) observe(err error) {
	at.pause = at.limiter.Observe(at.session.request.Scheduled, pluginhost.Throttled(err))
}

// judge turns what a mutating call answered into the end of the step, or into an error of the activity. Reasons are
// those of a failed initialisation.
func judge(p *pluginhost.Provider, err error) (result engine.StepFinished, reasons []string, end error) {
	if temporal.IsCanceledError(err) || isApplication(err) {
		return engine.StepFinished{}, nil, err
	}
	v := p.Classify(err)
	switch v.Outcome {
	case pluginhost.Answered:
		return engine.StepFinished{Outcome: engine.OutcomeDone}, nil, nil
	case pluginhost.Exists:
		var init *plugin.InitError
		if errors.As(err, &init) {
			reasons = init.Reasons
		}
		return engine.StepFinished{Outcome: engine.OutcomePartial, Error: pluginhost.ErrorText(err)}, reasons, nil
	case pluginhost.NotDone:
		return engine.StepFinished{}, nil, notDone(pluginhost.ErrorText(err), v.RetryAfter)
	case pluginhost.Unknown:
		if !v.Died {
			v.Reason = pluginhost.ErrorText(err)
		}
		return engine.StepFinished{}, nil, unknownOutcome(head(v.Reason, maxFailure))
	case pluginhost.Unreadable: // to make it again would have the same answer, and maybe another effect
		return engine.StepFinished{Outcome: engine.OutcomeUndecidable,
			Error: "the call was made, and its answer cannot be read: " + v.Reason}, nil, nil
	default:
		return failed(pluginhost.ErrorText(err)), nil, nil
	}
}

// hadEffect tells whether a call is known to have had its effect.
func hadEffect(result engine.StepFinished) bool {
	return result.Outcome == engine.OutcomeDone || result.Outcome == engine.OutcomePartial
}

func isApplication(err error) bool {
	var application *temporal.ApplicationError
	return errors.As(err, &application)
}

func isType(err error, kind string) bool {
	var application *temporal.ApplicationError
	return errors.As(err, &application) && application.Type() == kind
}

// finish completes a step that had its effect: outputs are protected and become a bag, however long the store takes.
func (at *attempt) finish(
	ctx context.Context, result engine.StepFinished, outputs, inputs resource.PropertyMap,
) (engine.StepFinished, error) {
	outputs = properties.WithoutOutputs(outputs)
	var additional []string
	if at.step.New != nil {
		additional = at.step.New.AdditionalSecretOutputs
	} else if at.step.Old != nil {
		additional = at.step.Old.AdditionalSecretOutputs
	}
	properties.ProtectOutputs(outputs, inputs, additional)
	result.At = time.Now().UTC().Format(time.RFC3339Nano)
	var err error
	result.Outputs, err = at.keep(ctx, outputs)
	return result, err
}

// keep makes a bag, however long the store takes: what was done must not be forgotten.
func (at *attempt) keep(ctx context.Context, values resource.PropertyMap) (engine.Bag, error) {
	ctx = context.WithoutCancel(ctx)
	at.keeping.Store(true)
	defer at.keeping.Store(false)
	var bag engine.Bag
	err := persist(ctx, mayPass, func() (err error) {
		if bag, err = at.session.values.Encode(ctx, values); err != nil && activity.IsActivity(ctx) {
			activity.GetLogger(ctx).Warn("What a step came to cannot be stored yet.", "resource", string(at.step.URN),
				"error", err)
		}
		return err
	})
	return bag, err
}
