package workflows

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// run is one run of a Run workflow, between two continue-as-new.
type run struct {
	in     deployments.RunInput // as given, with Worker and Rounds kept up to date
	core   *engine.Run          // nil until the base is loaded
	inbox  inbox
	outbox outbox
	saver  saver

	messageSignals, cancelSignals, resolutionSignals workflow.ReceiveChannel
	batches                                          []deployments.Messages // from polls and results, not delivered yet
	resolutions                                      []engine.Resolved      // accepted, not delivered yet
	cancellable                                      workflow.Context       // cancelled instead of the cancel signal
	cancelDelivered                                  bool                   // that cancel was delivered to the core
	outgoing                                         []workflow.Future      // signals to the Update

	flights          []flight       // in order of start
	pauses           []pausing      // in order of start
	waitingForWorker []call         // calls that found no worker
	suspect          string         // the worker that was reported as lost
	toRefresh        []engine.Step  // refreshes that are to be gathered into groups
	notRefreshed     []engine.Step  // refreshes of groups that are to be repeated as steps
	lostOn           map[int]string // by operation: the worker that fell silent with its attempt, until that is settled
	toInquire        []inquiry      // attempts of which their workers are to be asked

	broken      bool        // it has panicked
	closing     bool        // it ends or continues as new: nothing starts, polls return
	initialSize historySize // once the core was loaded
	polls       int
	handled     int // events of the core
	quiesce     quiesce
}

// Run drives the core of one update: it passes events to it and starts the commands that it returns, until it has a
// result.
func (w *Workflows) Run(ctx workflow.Context, in deployments.RunInput) (_ deployments.RunOutput, err error) {
	requireRevision(ctx)
	ctx = withNamesOf(ctx, in)
	r := newRun(in)
	defer func() { r.broken = err != nil && errors.Is(err, errDefect) }()
	defer panicToError(ctx, &err)
	r.cancellable = ctx
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if w.settings.OnRun != nil {
		w.settings.OnRun(&Replayed{r})
	}
	if err := r.listen(ctx); err != nil {
		return deployments.RunOutput{}, err
	}
	if err := r.load(ctx); err != nil {
		out := r.loadFailed(err)
		return out, r.endError(ctx, out)
	}
	r.deliverAll(ctx, in.Undelivered)
	for {
		if endsAfterReset(ctx) {
			return deployments.RunOutput{}, resetError(ctx)
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
		r.showProgress(ctx)
		if err := workflow.Await(ctx, func() bool { return r.hasWork() || endsAfterReset(ctx) }); err != nil {
			return deployments.RunOutput{}, err
		}
	}
}

// endError returns the error with which the run ends; nil when it succeeded or was cancelled.
func (r *run) endError(ctx workflow.Context, out deployments.RunOutput) error {
	if err := resetError(ctx); err != nil {
		return err
	}
	return failedError(out.Result.Status, out.Result.Sentence(), out)
}

func newRun(in deployments.RunInput) *run {
	return &run{
		in:    in,
		inbox: inbox{epoch: in.Epoch, received: in.Received, early: in.Early},
		outbox: outbox{
			epoch: in.Epoch, acked: in.Cursor, replies: in.Replies, ended: in.Ended,
		},
		saver: saver{update: in.Update, base: in.Base, number: in.Saves}, lostOn: map[int]string{},
	}
}

// listen registers the handlers of all signals, updates and queries.
func (r *run) listen(ctx workflow.Context) error {
	r.messageSignals = workflow.GetSignalChannel(ctx, deployments.SignalMessages)
	r.cancelSignals = workflow.GetSignalChannel(ctx, deployments.SignalCancel)
	r.resolutionSignals = workflow.GetSignalChannel(ctx, deployments.SignalResolve)
	if err := workflow.SetQueryHandler(ctx, deployments.QueryProgress, r.progress); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, deployments.UpdateResolve, r.acceptResolution,
		workflow.UpdateHandlerOptions{Validator: r.validateResolution}); err != nil {
		return err
	}
	return workflow.SetUpdateHandler(ctx, deployments.UpdatePoll, r.poll)
}

// poll returns replies to the program's host as soon as there are some. It waits without a timer: a host may wait on an
// accepted poll for any time without adding to the history.
func (r *run) poll(ctx workflow.Context, p deployments.Poll) (deployments.Replies, error) {
	r.polls++
	r.outbox.acknowledge(p)
	r.queueBatch(p.Messages)
	err := workflow.Await(disconnected(ctx), func() bool { return r.closing || r.outbox.ready(p) })
	return r.outbox.next(p), err
}

// queueBatch takes messages that came with a poll or a result.
func (r *run) queueBatch(m *deployments.Messages) {
	if m != nil {
		r.batches = append(r.batches, *m)
	}
}

// load creates the core from the headers of the base, which are read in parts that a workflow task can decode.
func (r *run) load(ctx workflow.Context) error {
	var base []engine.State
	var pending []engine.PendingOperation
	for from, more := 0, r.in.Base > 0; more; {
		in := deployments.HeadersInput{Update: r.in.Update, Base: r.in.Base, From: from, Limit: headerItems}
		var part deployments.Headers
		ctx := onShared(ctx, fmt.Sprintf("load version %d", r.in.Base))
		if err := execute(ctx, deployments.ActivityReadHeaders, in).Get(ctx, &part); err != nil {
			return err
		}
		base, pending = append(base, part.States...), append(pending, part.Pending...)
		r.in.Goal.Defaults = append(r.in.Goal.Defaults, part.Defaults...)
		from, more = part.Next, part.Next > 0
	}
	suspended := []byte(r.in.Suspended)
	if r.in.Spilled != nil {
		var err error
		if suspended, err = r.loadSpilled(ctx, *r.in.Spilled); err != nil {
			return err
		}
	}
	if r.initialSize = historySizeOf(ctx); r.initialSize.bytes >= fullBytes/2 {
		return fmt.Errorf("the state of %s is too large for one update: it takes %d MiB of a history, which may hold "+
			"%d; divide its "+
			"resources among several stacks", r.in.Update.StackName, r.initialSize.bytes>>20, fullBytes/2>>20)
	}
	if suspended == nil {
		r.core = engine.New(r.in.Goal, base, pending)
		return nil
	}
	var err error
	r.core, err = engine.Resume(r.in.Goal, base, pending, suspended)
	return err
}

// loadFailed returns the result of a run whose core could not be loaded.
func (r *run) loadFailed(err error) deployments.RunOutput {
	r.outbox.closed = true
	return deployments.RunOutput{
		Result: engine.Result{Status: engine.StatusFailed, Error: messageOf(err)}, Saves: r.in.Saves,
	}
}

// hasWork reports whether the loop has something to do.
func (r *run) hasWork() bool {
	for _, f := range r.flights {
		if f.future.IsReady() {
			return true
		}
	}
	for _, p := range r.pauses {
		if p.timer.IsReady() {
			return true
		}
	}
	return r.hasInput() || r.saver.hasWork() || r.quiesce.expired()
}

// hasInput reports whether anything received was not delivered yet.
func (r *run) hasInput() bool {
	return r.messageSignals.Len()+r.cancelSignals.Len()+r.resolutionSignals.Len()+len(r.batches)+len(
		r.resolutions) > 0 ||
		r.cancellable.Err() != nil && !r.cancelDelivered
}

// receive delivers everything that has happened to the core, so that each wake-up handles one batch.
func (r *run) receive(ctx workflow.Context) {
	r.deliverAll(ctx, r.drainSignals())
	r.collectResults(ctx)
	r.endPauses()
	r.deliverBatches(ctx) // that came with results
}

// drainSignals takes everything that was received and not delivered.
func (r *run) drainSignals() deployments.Undelivered {
	late := deployments.Undelivered{Messages: r.batches, Resolutions: r.resolutions}
	r.batches, r.resolutions = nil, nil
	for c := (engine.Cancelled{}); r.cancelSignals.ReceiveAsync(&c); c = (engine.Cancelled{}) {
		late.Cancels = append(late.Cancels, c)
	}
	if r.cancellable.Err() != nil && !r.cancelDelivered {
		r.cancelDelivered = true
		late.Cancels = append(late.Cancels, engine.Cancelled{})
	}
	for a := (engine.Resolved{}); r.resolutionSignals.ReceiveAsync(&a); a = (engine.Resolved{}) {
		late.Resolutions = append(late.Resolutions, a)
	}
	for m := (deployments.Messages{}); r.messageSignals.ReceiveAsync(&m); m = (deployments.Messages{}) {
		late.Messages = append(late.Messages, m)
	}
	return late
}

// deliverAll delivers what drainSignals took.
func (r *run) deliverAll(ctx workflow.Context, late deployments.Undelivered) {
	for _, c := range late.Cancels {
		r.handle(c)
	}
	for _, a := range late.Resolutions {
		r.handle(a)
	}
	r.batches = append(late.Messages, r.batches...)
	r.deliverBatches(ctx)
}

// deliverBatches delivers the messages that were queued.
func (r *run) deliverBatches(ctx workflow.Context) {
	batches := r.batches
	r.batches = nil
	for _, m := range batches {
		for _, item := range r.inbox.take(m) {
			r.deliver(ctx, item)
		}
	}
}

func (r *run) handle(e engine.Event) {
	r.handled++
	r.core.Handle(e)
}

// deliver handles one message of the program's host or of the Update.
func (r *run) deliver(ctx workflow.Context, m deployments.Message) {
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
	case m.Waits != nil:
		r.handle(*m.Waits)
	case m.Exited != nil:
		r.outbox.ended = true
		r.handle(*m.Exited)
	case m.Refused != nil:
		r.handle(*m.Refused)
	case m.Worker != "":
		r.useWorker(ctx, m.Worker)
	case m.Lost > 0:
		r.signalUpdate(ctx, deployments.SignalReached, deployments.Reached{Lost: m.Lost, Steps: r.stepsDone()})
	}
}

// signalUpdate signals the Update. Only a run that continues as new waits until the signal is sent: the server sends
// none for a closed workflow, and an Update that has closed needs none.
func (r *run) signalUpdate(ctx workflow.Context, signal string, v any) {
	r.outgoing = append(r.outgoing, workflow.SignalExternalWorkflow(ctx, deployments.UpdateWorkflowID(r.in.Update), "",
		nameIn(ctx, signal), v))
}

// signalsSent reports whether every signal to the Update has been sent.
func (r *run) signalsSent() bool {
	r.outgoing = slices.DeleteFunc(r.outgoing, func(f workflow.Future) bool { return f.IsReady() })
	return len(r.outgoing) == 0
}

// lookAfterErrors is a change of the workflow: a step that failed is settled if its error leaves open whether it had
// its effect.
const lookAfterErrors = "look-after-errors"

// weighed returns an event as this workflow handles it: one that an earlier build went on with takes a failed step for
// one without effect.
func weighed(ctx workflow.Context, e engine.Event) engine.Event {
	f, ok := e.(engine.StepFinished)
	if !ok || f.Evidence == nil || !f.Evidence.Look ||
		workflow.GetVersion(ctx, lookAfterErrors, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		return e
	}
	evidence := *f.Evidence
	evidence.Look = false
	f.Evidence = &evidence
	return f
}

// collectResults handles the activities that have ended.
func (r *run) collectResults(ctx workflow.Context) {
	pending := r.flights[:0]
	for _, f := range r.flights {
		if !f.future.IsReady() {
			pending = append(pending, f)
			continue
		}
		f.cancel()
		err := f.future.Get(ctx, nil)
		if workerLost(err) && f.worker == r.in.Worker {
			r.reportWorkerLost(ctx)
		}
		if neverStarted(err) {
			r.waitingForWorker = append(r.waitingForWorker, f.call)
			continue
		}
		if op, _ := f.stepRound(); op != 0 && f.name == deployments.ActivityStep && silent(err) {
			r.lostOn[op] = f.worker
		}
		for _, e := range f.events(ctx, f.future) {
			r.handle(weighed(ctx, e))
		}
	}
	clear(r.flights[len(pending):])
	r.flights = pending
	r.startInquiries(ctx)
	r.startWaiting(ctx)
}
