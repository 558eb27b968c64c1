package workflows

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// stack is a Stack workflow between two continue-as-new.
type stack struct {
	queue
	head     deployments.Head
	looked   time.Time // when the head was read; in a later task it may have moved
	opened   bool
	lock     workflow.Mutex // a submission at a time
	finished workflow.ReceiveChannel
	watch    *watch // of the active update

	remains  *deployments.RecoverInput // of the active update, which closed without settling
	trouble  *trouble                  // why the stack cannot go on; nil when it can
	attempts int                       // that failed
	asked    bool                      // somebody wants the next attempt now
}

// watch waits for an Update workflow to close.
type watch struct {
	closed workflow.Future
	cancel workflow.CancelFunc
	polled bool // by an activity: an error is that one's own
}

// Stack is the lock and the queue of one stack: it runs its updates one after another, and ends when it has been idle
// for a while. Nothing is lost with it: the head names the update that was under way.
func (w *Workflows) Stack(ctx workflow.Context, in deployments.StackInput) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a lock is not cancelled
	s := &stack{queue: queue{StackInput: in}, lock: workflow.NewMutex(ctx)}
	if err := s.listen(ctx); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	for {
		s.receive(ctx)
		if err := s.advance(ctx); err != nil {
			return err
		}
		if s.mayContinue(ctx) {
			return workflow.NewContinueAsNewError(ctx, deployments.WorkflowStack, s.StackInput)
		}
		if s.busy() {
			if err := workflow.Await(ctx, func() bool { return s.awake() || s.mayContinue(ctx) }); err != nil {
				return err
			}
			continue
		}
		more, err := workflow.AwaitWithTimeout(ctx, linger, func() bool { return s.awake() || s.busy() })
		if err != nil {
			return err
		}
		if !more && workflow.AllHandlersFinished(ctx) {
			return nil
		}
	}
}

func (s *stack) listen(ctx workflow.Context) error {
	s.finished = workflow.GetSignalChannel(ctx, deployments.SignalFinished)
	info := func() (deployments.StackInfo, error) { return s.info(), nil }
	return errors.Join(
		workflow.SetQueryHandler(ctx, deployments.QueryQueue, info),
		workflow.SetUpdateHandler(ctx, deployments.UpdateSubmit, s.submitted),
		workflow.SetUpdateHandler(ctx, deployments.UpdateWithdraw, s.recall),
		workflow.SetUpdateHandler(ctx, deployments.UpdateReserve, s.reserved),
		workflow.SetUpdateHandler(ctx, deployments.UpdateRecover, s.recalled),
	)
}

// read reads the head.
func (s *stack) read(ctx workflow.Context) error {
	s.head = deployments.Head{}
	reading := reporting(onShared(ctx, "read the head"))
	err := workflow.ExecuteActivity(reading, deployments.ActivityHead, s.Stack).Get(ctx, &s.head)
	if err == nil {
		s.looked = workflow.Now(ctx)
	}
	s.Version = max(s.Version, s.head.Next-1)
	if len(s.Answers) == 0 {
		s.Answers, s.head.Answers = s.head.Answers, nil
	}
	return err
}

// submitted answers the update handler submit.
func (s *stack) submitted(ctx workflow.Context, r deployments.UpdateRequest) (deployments.Accepted, error) {
	ctx = lasting(ctx)
	if a, ok := s.answered(r.RequestID); ok {
		return a, nil
	}
	if err := s.ready(ctx); err != nil {
		return deployments.Accepted{}, err
	}
	if err := s.lock.Lock(ctx); err != nil {
		return deployments.Accepted{}, err
	}
	defer s.lock.Unlock()
	if err := s.look(ctx); err != nil {
		return deployments.Accepted{}, err
	}
	if a, ok := s.answered(r.RequestID); ok {
		return a, nil
	}
	if s.trouble != nil {
		return deployments.Accepted{}, s.trouble.reason
	}
	a, err := s.submit(r, s.head.Version, workflow.Now(ctx))
	return a, refusal(err)
}

// look reads the head if something may have moved it. The lock is held.
func (s *stack) look(ctx workflow.Context) error {
	if s.busy() || s.looked.Equal(workflow.Now(ctx)) {
		return nil
	}
	return s.read(ctx)
}

// reserved answers the update handler reserve.
func (s *stack) reserved(ctx workflow.Context) (int, error) {
	ctx = lasting(ctx)
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	if _, err := workflow.AwaitWithTimeout(ctx, soonFree, func() bool { return !s.busy() }); err != nil {
		return 0, err
	}
	if err := s.lock.Lock(ctx); err != nil {
		return 0, err
	}
	defer s.lock.Unlock()
	if err := s.look(ctx); err != nil {
		return 0, err
	}
	version, err := s.reserve()
	return version, refusal(err)
}

// lasting is the context of a handler of a workflow that a cancel does not end: what is asked of it afterwards is
// answered, too.
func lasting(ctx workflow.Context) workflow.Context {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return ctx
}

// recall answers the update handler withdraw.
func (s *stack) recall(ctx workflow.Context, w deployments.Withdrawal) (bool, error) {
	err := workflow.Await(lasting(ctx), func() bool { return s.opened || s.trouble != nil })
	return err == nil && s.remove(w.Update, "cancelled before it began"), err
}

// refusal makes an error of ours one that a client can read.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), string(deployments.CodeOf(err)), nil)
}

// awake reports that there is something to do.
func (s *stack) awake() bool {
	return s.finished.Len() > 0 || len(s.withdrawn) > 0 || s.Active == nil && len(s.Queue) > 0 ||
		s.watch != nil && s.watch.closed.IsReady() || s.trouble != nil && s.due()
}

// receive takes note of updates that have settled.
func (s *stack) receive(ctx workflow.Context) {
	for {
		var f deployments.UpdateFinished
		if !s.finished.ReceiveAsync(&f) {
			return
		}
		s.free(ctx, f.Update)
	}
}

// advance recovers an update that closed without settling, tells of those that were withdrawn, and starts the next.
func (s *stack) advance(ctx workflow.Context) error {
	if s.watch != nil && s.watch.closed.IsReady() {
		s.closed(ctx)
	}
	if s.Active != nil && s.watch == nil && s.due() {
		if err := s.recover(ctx); err != nil {
			return err
		}
	}
	for len(s.withdrawn) > 0 {
		in := s.withdrawn[0]
		s.withdrawn = s.withdrawn[1:]
		s.launch(ctx, in).cancel()
	}
	if s.next(workflow.Now(ctx)) {
		s.watch = s.launch(ctx, deployments.UpdateInput{Update: s.Active.Update, Request: s.Active.Request})
	}
	return nil
}

// launch starts an Update workflow that outlives this one. If there is one by that name already, it is watched.
func (s *stack) launch(ctx workflow.Context, in deployments.UpdateInput) *watch {
	childCtx, cancel := workflow.WithCancel(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            deployments.UpdateWorkflowID(in.Update),
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary:         clip(Summary(in.Update, in.Request), summaryBytes),
		TypedSearchAttributes: SearchAttributes(in.Update, in.Request),
		Priority:              Priority(in.Request.Scheduled),
	}))
	child := workflow.ExecuteChildWorkflow(childCtx, deployments.WorkflowUpdate, in)
	if err := child.GetChildWorkflowExecution().Get(ctx, nil); temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		cancel()
		return s.ended(ctx, in.Update)
	}
	_ = cancel // it ends when it ends, not when nobody looks
	return &watch{closed: child, cancel: func() {}}
}

// observe watches the active update, which is not a child of this run.
func (s *stack) observe(ctx workflow.Context) { s.watch = s.ended(ctx, s.Active.Update) }

func (s *stack) ended(ctx workflow.Context, u deployments.UpdateName) *watch {
	ctx, cancel := workflow.WithCancel(onShared(ctx, "wait for update "+u.Version))
	ctx = workflow.WithHeartbeatTimeout(workflow.WithStartToCloseTimeout(ctx, forever), heartbeat)
	return &watch{closed: workflow.ExecuteActivity(ctx, deployments.ActivityEnded, u), cancel: cancel, polled: true}
}

// mayContinue reports that the history is long and that everything is in the input of the next run.
func (s *stack) mayContinue(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return (info.GetCurrentHistoryLength() > stackEvents || info.GetContinueAsNewSuggested()) &&
		workflow.AllHandlersFinished(ctx) && s.finished.Len() == 0 && len(s.withdrawn) == 0
}
