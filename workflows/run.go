package workflows

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// run is a Run workflow between two continue-as-new.
type run struct {
	in     deployments.RunInput // as given; Worker and Rounds are kept up to date
	core   *engine.Run          // nil until the base is loaded
	inbox  inbox
	outbox outbox
	saver  saver

	messages, cancels, answers workflow.ReceiveChannel
	posted                     []deployments.Messages // by polls and results, not heard yet
	resolutions                []engine.Resolved      // accepted, not heard yet
	given                      workflow.Context       // may be cancelled, which is as gentle as the signal
	interrupted                bool                   // it is, and the core knows
	signals                    []workflow.Future      // sent to the Update

	flights []flight // in order of start
	parked  []call   // those that found no worker and wait for another
	accused string   // the worker that Update knows to be lost

	broken  bool // it has panicked
	closing bool // ends or continues as new: nothing starts, polls return
	opened  heft // the history when the core was there
	polls   int
	handled int // events of the core
	hold    hold
}

// Run drives the core of one update: it tells it what happens and starts what may start, until there is a result.
func (w *Workflows) Run(ctx workflow.Context, in deployments.RunInput) (_ deployments.RunOutput, err error) {
	belongs(ctx)
	r := newRun(in)
	defer func() { r.broken = err != nil && errors.Is(err, errDefect) }()
	defer defective(ctx, &err)
	r.given = ctx
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if w.settings.Opened != nil {
		w.settings.Opened(&Replayed{r})
	}
	if err := r.listen(ctx); err != nil {
		return deployments.RunOutput{}, err
	}
	if err := r.load(ctx); err != nil {
		out := r.unopened(err)
		return out, r.ended(ctx, out)
	}
	r.catchUp(ctx, in.Late)
	for {
		if overtaken(ctx) {
			return deployments.RunOutput{}, wasReset(ctx)
		}
		r.receive(ctx)
		if r.mayContinue(ctx) {
			if err := r.continueAsNew(ctx); err != nil {
				return deployments.RunOutput{}, err
			}
		}
		r.issue(ctx)
		r.saver.tick(ctx)
		if result, ended := r.core.Result(); ended {
			return r.finish(ctx, result)
		}
		r.show(ctx)
		if err := workflow.Await(ctx, func() bool { return r.awake() || overtaken(ctx) }); err != nil {
			return deployments.RunOutput{}, err
		}
	}
}

// ended is the error of a run that ends; nil when it ends well.
func (r *run) ended(ctx workflow.Context, out deployments.RunOutput) error {
	if err := wasReset(ctx); err != nil {
		return err
	}
	return ending(out.Result.Status, out.Result.Error, out)
}

func newRun(in deployments.RunInput) *run {
	return &run{
		in:    in,
		inbox: inbox{epoch: in.Epoch, received: in.Received, held: in.Held},
		outbox: outbox{
			epoch: in.Epoch, acked: in.Cursor, replies: in.Replies, ended: in.Ended,
		},
		saver: saver{update: in.Update, base: in.Base, number: in.Saves},
	}
}

// listen opens every way by which the run can be reached.
func (r *run) listen(ctx workflow.Context) error {
	r.messages = workflow.GetSignalChannel(ctx, deployments.SignalMessages)
	r.cancels = workflow.GetSignalChannel(ctx, deployments.SignalCancel)
	r.answers = workflow.GetSignalChannel(ctx, deployments.SignalResolve)
	if err := workflow.SetQueryHandler(ctx, deployments.QueryProgress, r.progress); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, deployments.UpdateResolve, r.resolve,
		workflow.UpdateHandlerOptions{Validator: r.answerable}); err != nil {
		return err
	}
	return workflow.SetUpdateHandler(ctx, deployments.UpdatePoll, r.poll)
}

// poll answers the program's host as soon as there is something for it. It waits without a timer: the host waits on
// an accepted poll for as long as it likes, at no cost to the history.
func (r *run) poll(ctx workflow.Context, p deployments.Poll) (deployments.Replies, error) {
	r.polls++
	r.outbox.acknowledge(p)
	r.post(p.Messages)
	err := workflow.Await(lasting(ctx), func() bool { return r.closing || r.outbox.ready(p) })
	return r.outbox.answer(p), err
}

// post takes messages that came with something else.
func (r *run) post(m *deployments.Messages) {
	if m != nil {
		r.posted = append(r.posted, *m)
	}
}

// load opens the core on the base's headers, which come in parts that a workflow task can decode.
func (r *run) load(ctx workflow.Context) error {
	var base []engine.State
	var pending []engine.PendingOperation
	for from, more := 0, r.in.Base > 0; more; {
		in := deployments.HeadersInput{Update: r.in.Update, Base: r.in.Base, From: from, Limit: headerItems}
		var part deployments.Headers
		ctx := onShared(ctx, fmt.Sprintf("load version %d", r.in.Base))
		if err := workflow.ExecuteActivity(ctx, deployments.ActivityHeaders, in).Get(ctx, &part); err != nil {
			return err
		}
		base, pending = append(base, part.States...), append(pending, part.Pending...)
		r.in.Goal.Defaults = append(r.in.Goal.Defaults, part.Defaults...)
		from, more = part.Next, part.Next > 0
	}
	suspended := []byte(r.in.Suspended)
	if r.in.Aside != nil {
		var err error
		if suspended, err = r.takeUp(ctx, *r.in.Aside); err != nil {
			return err
		}
	}
	if r.opened = heftOf(ctx); r.opened.bytes >= fullBytes/2 {
		return fmt.Errorf("the state of %s is too large for one update: it takes %d MiB of a history, which may hold "+
			"%d; divide its "+
			"resources among several stacks", r.in.Update.StackName, r.opened.bytes>>20, fullBytes/2>>20)
	}
	if suspended == nil {
		r.core = engine.New(r.in.Goal, base, pending)
		return nil
	}
	var err error
	r.core, err = engine.Resume(r.in.Goal, base, pending, suspended)
	return err
}

// unopened is the result of a run that has no core to ask.
func (r *run) unopened(err error) deployments.RunOutput {
	r.outbox.closed = true
	return deployments.RunOutput{
		Result: engine.Result{Status: engine.StatusFailed, Error: sentence(err)}, Saves: r.in.Saves,
	}
}

// awake reports that there is something to do.
func (r *run) awake() bool {
	for _, f := range r.flights {
		if f.future.IsReady() {
			return true
		}
	}
	return r.signalled() || r.saver.awake() || r.hold.over()
}

// signalled reports that something was said and not heard yet.
func (r *run) signalled() bool {
	return r.messages.Len()+r.cancels.Len()+r.answers.Len()+len(r.posted)+len(r.resolutions) > 0 ||
		r.given.Err() != nil && !r.interrupted
}

// receive hands everything that has happened to the core, so that one wake is one batch.
func (r *run) receive(ctx workflow.Context) {
	r.catchUp(ctx, r.unheard())
	r.land(ctx)
	r.open(ctx) // what results carried
}

// unheard takes what has arrived and was not heard.
func (r *run) unheard() deployments.Late {
	late := deployments.Late{Messages: r.posted, Answers: r.resolutions}
	r.posted, r.resolutions = nil, nil
	for c := (engine.Cancelled{}); r.cancels.ReceiveAsync(&c); c = (engine.Cancelled{}) {
		late.Cancels = append(late.Cancels, c)
	}
	if r.given.Err() != nil && !r.interrupted {
		r.interrupted = true
		late.Cancels = append(late.Cancels, engine.Cancelled{})
	}
	for a := (engine.Resolved{}); r.answers.ReceiveAsync(&a); a = (engine.Resolved{}) {
		late.Answers = append(late.Answers, a)
	}
	for m := (deployments.Messages{}); r.messages.ReceiveAsync(&m); m = (deployments.Messages{}) {
		late.Messages = append(late.Messages, m)
	}
	return late
}

// catchUp hears what unheard took.
func (r *run) catchUp(ctx workflow.Context, late deployments.Late) {
	for _, c := range late.Cancels {
		r.handle(c)
	}
	for _, a := range late.Answers {
		r.handle(a)
	}
	r.posted = append(late.Messages, r.posted...)
	r.open(ctx)
}

// open hears what was posted.
func (r *run) open(ctx workflow.Context) {
	posted := r.posted
	r.posted = nil
	for _, m := range posted {
		for _, item := range r.inbox.take(m) {
			r.hear(ctx, item)
		}
	}
}

func (r *run) handle(e engine.Event) {
	r.handled++
	r.core.Handle(e)
}

// hear takes one message of the program's host, or of the Update.
func (r *run) hear(ctx workflow.Context, m deployments.Message) {
	switch {
	case m.Started != nil:
		r.outbox.begin(m.Started.Epoch)
		r.handle(*m.Started)
	case m.Registered != nil:
		r.handle(*m.Registered)
	case m.OutputsRegistered != nil:
		r.handle(*m.OutputsRegistered)
	case m.ReadRequested != nil:
		r.handle(*m.ReadRequested)
	case m.Exited != nil:
		r.outbox.ended = true
		r.handle(*m.Exited)
	case m.Refused != nil:
		r.handle(*m.Refused)
	case m.Worker != "":
		r.move(ctx, m.Worker)
	case m.Lost > 0:
		r.tell(ctx, deployments.SignalReached, deployments.Reached{Lost: m.Lost, Steps: r.steps()})
	}
}

// tell signals the Update. Only a run that continues as new waits for it: the server sends nothing for one that is
// closed, and an Update that is gone needs nothing.
func (r *run) tell(ctx workflow.Context, signal string, v any) {
	r.signals = append(r.signals, workflow.SignalExternalWorkflow(ctx, deployments.UpdateWorkflowID(r.in.Update), "",
		signal, v))
}

// told reports that what the Update is told is on its way no more.
func (r *run) told() bool {
	r.signals = slices.DeleteFunc(r.signals, func(f workflow.Future) bool { return f.IsReady() })
	return len(r.signals) == 0
}

// land takes what has come back.
func (r *run) land(ctx workflow.Context) {
	up := r.flights[:0]
	for _, f := range r.flights {
		if !f.future.IsReady() {
			up = append(up, f)
			continue
		}
		f.cancel()
		err := f.future.Get(ctx, nil)
		if lost(err) && f.worker == r.in.Worker {
			r.accuse(ctx)
		}
		if unstarted(err) {
			r.parked = append(r.parked, f.call)
			continue
		}
		for _, e := range f.events(ctx, f.future) {
			r.handle(e)
		}
	}
	clear(r.flights[len(up):])
	r.flights = up
	r.launch(ctx)
}
