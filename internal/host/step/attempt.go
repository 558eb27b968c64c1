package step

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/host/ratelimit"
	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/deployctl/deployctl/statestore/creates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// NotHosted is the result of a step that this worker cannot make: err says why it has no session for it.
func NotHosted(ctx context.Context, in deployments.StepInput, err error) (deployments.StepOutput, error) {
	result, err := unsent(engine.StepFinished{}, err)
	result.Op, result.Attempt = in.Step.Op, in.Attempt()
	out := deployments.StepOutput{StepFinished: result}
	if err == nil {
		err = unsuccessful(ctx, out)
	} else if own := (*temporal.ApplicationError)(nil); errors.As(err, &own) &&
		own.Type() == deployments.ErrorNotStarted {
		err = failure.StepNotStarted(own.Message(), in)
	}
	return out, failure.Of(err)
}

// attempt is one attempt of a step.
type attempt struct {
	session   *Steps
	step      engine.Step
	round     int
	former    string             // the worker with which it was lost, when that is to be found out; may be empty
	heartbeat *heartbeat.Beats   // nil if it only looks, as a part of a plan
	turn      bool               // it holds one of the places of steps that run at a time
	limiter   *ratelimit.Limiter // the rate limit of the provider's account
	pause     time.Duration      // before the first repetition of a throttled call; 0: the retry policy decides
	evidence  *engine.Evidence   // what the error of a call tells that is to be repeated; nil if it was said by its type

	rule     *lookup.Finder       // how its create is found; nil without one
	noted    creates.Mark         // the mark that an attempt of this create has recorded
	place    settlerule.Mark      // where its resource bears a mark; zero without a place
	noRule   string               // why no rule can be used; empty if there is none
	unfound  string               // why exists has found nothing
	absent   string               // the digest of the finder that exists has found nothing by
	bySeed   map[string]bool      // what seeded has found out, by what it was asked about
	admitted bool                 // the rate limit of the account has admitted the call
	askedBy  string               // the id by which look has found a resource; that of the resource may be another
	realID   string               // that of what exists has found
	provider *pluginhost.Provider // the provider that is called
	views    *pluginhost.Views    // what the provider publishes during its last call; nil before the first
	until    time.Time            // the deadline of the call
	overdue  bool                 // the call was not answered by the deadline and still runs
	sent     bool                 // the call was sent, so it may have had an effect
	keeping  atomic.Bool          // the call was answered, and its result is being stored
	over     chan struct{}        // closed when the attempt can have no further effect or result
}

// end marks the attempt as over: it can have no further effect or result.
func (at *attempt) end() {
	at.session.sent.CompareAndDelete(at.step.Op, at)
	close(at.over)
}

// redactResult sets the operation number of a result, removes secrets from it, and returns the redactor for the step's
// errors.
func (at *attempt) redactResult(ctx context.Context, result *engine.StepFinished) failure.Redactor {
	result.Op = at.step.Op
	hide := at.session.redactor(ctx, failure.BagsOf(at.step.Provider, at.step.New, at.step.Old)...)
	hide.Step(ctx, result)
	return hide
}

// rest returns the pause before a round of a step. The first two rounds start at once: most steps lose their worker at
// most once.
func rest(round int) time.Duration {
	if round < 3 {
		return 0
	}
	return time.Second << min(round-3, 6)
}

func (at *attempt) run(ctx context.Context) (engine.StepFinished, error) {
	if !at.turn {
		if err := at.session.parallel.Acquire(ctx, at.heartbeat.Cancelled()); err != nil {
			return engine.StepFinished{}, notCalled(err)
		}
	}
	defer at.session.parallel.Release()
	if token.IsProvider(at.step.Type) {
		return at.configure(ctx)
	}
	if at.step.Provider == nil { // a component has no provider: it only groups its children
		return at.finish(ctx, engine.StepFinished{Outcome: engine.OutcomeDone}, nil, nil)
	}
	account, err := at.session.providers.Account(ctx, at.step.Provider)
	if err != nil {
		return at.providerUnavailable(err)
	}
	provider, err := at.session.providers.Open(ctx, account, at.step.Provider.Extension)
	if err != nil {
		return at.providerUnavailable(err)
	}
	at.limiter = account.Limiter
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
	own, internal := failure.OfService(err)
	switch {
	case failure.Interrupted(err):
		return engine.StepFinished{}, err
	case internal:
		return engine.StepFinished{}, own
	case hosted.IsTransient(err):
		return engine.StepFinished{}, failure.NotDone(pluginhost.ErrorText(err), pluginhost.RetryAfter(err))
	}
	return failed(pluginhost.ErrorText(err)), nil
}

func failed(text string) engine.StepFinished {
	return engine.StepFinished{Outcome: engine.OutcomeFailed, Error: text}
}

// mutate makes a changing call, if this attempt still holds its lease, and turns the answer into the step's result. The
// call does not end with the context; only a requested cancel reaches the provider. At the step's deadline the activity
// stops waiting with an unknown outcome, and frees its place for another step. The call continues: its late answer is
// stored where Settle finds it.
func mutate[T any](
	ctx context.Context, at *attempt, p *pluginhost.Provider,
	call func(context.Context) (T, error), conclude func(T, error) (engine.StepFinished, error),
) (engine.StepFinished, error) {
	if !at.step.Preview {
		if !at.admitted {
			if err := at.keepRate(ctx); err != nil {
				return engine.StepFinished{}, err
			}
		}
		if err := at.heartbeat.HoldsLease(ctx); err != nil {
			return engine.StepFinished{}, err
		}
		at.provider = p
		at.until, _ = ctx.Deadline()
		if round, spent := at.session.spent.Load(at.step.Op); spent && round.(int) >= at.round {
			return engine.StepFinished{}, failure.UnknownOutcome("an earlier attempt was answered already")
		}
		if err := at.send(); err != nil {
			return engine.StepFinished{}, err
		}
		at.session.called.Store(at.step.Op, true)
		at.session.answers.drop(at.stepOf()) // that an earlier one had no effect
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
	return engine.StepFinished{}, failure.UnknownOutcome("it was not answered in its time")
}

// keepRate waits until the rate limit of the account admits a call. If it fails, no call was made.
func (at *attempt) keepRate(ctx context.Context) error {
	if at.heartbeat == nil { // it is part of a plan
		return notCalled(at.limiter.Wait(ctx, nil, at.session.request.Scheduled))
	}
	err := notCalled(at.limiter.Wait(ctx, at.heartbeat.Cancelled(), at.session.request.Scheduled))
	switch {
	case !failure.Interrupted(err):
		return err
	case at.heartbeat.CancelRequested(ctx):
		return temporal.NewCanceledError()
	}
	return failure.Postponed("the worker stops", 0)
}

// notCalled translates the error of a wait that ended before the provider was called.
func notCalled(err error) error {
	var later *ratelimit.Postponed
	switch {
	case errors.As(err, &later):
		return failure.Postponed(later.Reason, later.After)
	case errors.Is(err, ratelimit.ErrCancelled):
		return temporal.NewCanceledError()
	}
	return err
}

// observe reports to the limiter whether the provider's account throttled a call.
func (at *attempt) observe(err error) {
	at.pause = at.limiter.Observe(at.session.request.Scheduled, pluginhost.Throttled(err))
}

// finish completes the result of a step that had its effect: it marks secret outputs and stores the outputs as a bag.
// It retries until the store accepts them.
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
	if result.Outputs, err = at.keep(ctx, outputs); err != nil {
		return result, err
	}
	return at.publish(ctx, result)
}

// keep stores values as a bag. It ignores the end of ctx and retries while the store's error may pass, because the
// values of a completed step exist nowhere else.
func (at *attempt) keep(ctx context.Context, values resource.PropertyMap) (engine.Bag, error) {
	return at.keepWithin(ctx, values, bags.InlineLimit)
}

// keepWithin is keep with another limit of what travels inline.
func (at *attempt) keepWithin(ctx context.Context, values resource.PropertyMap, inline int) (engine.Bag, error) {
	ctx = context.WithoutCancel(ctx)
	at.keeping.Store(true)
	defer at.keeping.Store(false)
	var bag engine.Bag
	err := failure.Persist(ctx, failure.MayPass, func() (err error) {
		if bag, err = at.session.values.EncodeWithin(ctx, values, inline); err != nil && activity.IsActivity(ctx) {
			activity.GetLogger(ctx).Warn("What a step came to cannot be stored yet.", "resource", string(at.step.URN),
				"error", err)
		}
		return err
	})
	return bag, err
}

// Make makes one attempt of a step.
func (s *Steps) Make(
	ctx context.Context, heart heartbeat.Heart, in deployments.StepInput,
) (deployments.StepOutput, error) {
	at := &attempt{session: s, step: in.Step, round: in.Round, heartbeat: heartbeat.Start(ctx, heart),
		over: make(chan struct{})}
	defer at.heartbeat.Stop()
	defer func() {
		if !at.overdue {
			at.end()
		}
	}()

	ctx, release := intake.WithHold(ctx)
	defer release()
	var result engine.StepFinished
	var err error
	if wait := rest(in.Round - in.Step.Retries); wait > 0 && activity.GetInfo(ctx).Attempt == 1 {
		err = failure.Postponed("it was lost before, and had no effect", wait)
	} else {
		result, err = at.guarded(ctx)
	}
	if err != nil && !at.sent {
		result, err = unsent(result, err)
	}
	if failure.Interrupted(err) && !at.heartbeat.CancelRequested(ctx) {
		err = failure.Postponed("the worker stops", 0)
	} else if failure.Interrupted(err) {
		result, err = engine.StepFinished{Outcome: engine.OutcomeCancelled}, nil
	} else if reason, ok := failure.Rejection(err); ok {
		result, err = at.rejected(ctx, reason)
	}
	hide := at.redactResult(ctx, &result)
	result.Attempt = in.Attempt()
	out := deployments.StepOutput{StepFinished: result}
	switch {
	case err != nil:
	case at.heartbeat.LastBeatRejected() || errors.Is(ctx.Err(), context.DeadlineExceeded):
		at.leave(ctx, result)
	case in.Step.Answer != nil && result.Outcome == engine.OutcomeDone && result.Found == nil && result.Awaited == nil &&
		engine.ViewError(result.Views) == "":
		reply := *in.Step.Answer
		reply.ID, reply.Object = result.ID, result.Outputs
		out.Answered, out.Messages = s.host.ReplyEarly(ctx, reply)
	}
	if at.sent && (err == nil || failure.IsType(err, deployments.ErrorUnknownOutcome)) {
		s.spend(in.Step.Op, in.Round)
	}
	at.remember(ctx, result, err)
	if err == nil {
		return out, unsuccessful(ctx, out) // its texts are redacted
	}
	return out, hide.Failure(err)
}
