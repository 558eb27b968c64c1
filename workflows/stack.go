package workflows

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// stack is one run of a Stack workflow, between two continue-as-new.
type stack struct {
	queue
	head       deployments.Head
	headReadAt time.Time // the head may have changed in a later task
	loaded     bool
	lock       workflow.Mutex // one submission at a time
	finished   signals
	former     bool   // activities have their former names
	watch      *watch // of the active update

	awaited int                    // handlers that wait for the end of the active update
	over    deployments.UpdateName // what the head said was over when it was read last

	toRecover      *deployments.RecoverInput // of the active update, which closed without a commit
	discard        deployments.UpdateName    // for whose end an admin waits, even if it cannot be recovered
	trouble        *trouble                  // why the stack cannot continue; nil when it can
	attempts       int                       // that failed
	retryRequested bool                      // a client wants the next attempt now
}

// watch waits until an Update workflow is closed.
type watch struct {
	closed workflow.Future
	cancel workflow.CancelFunc
	polled bool // by an activity, whose error is not the update's
}

// Stack is the lock and the queue of one stack: it runs its updates one after another, and ends after it has been idle
// for a while. Nothing is lost then: the head names the active update.
func (w *Workflows) Stack(ctx workflow.Context, in deployments.StackInput) error {
	ctx, _ = workflow.NewDisconnectedContext(withNames(ctx)) // a cancel must not release the lock
	info := workflow.GetInfo(ctx)
	if in.Continues != "" && in.Continues != info.ContinuedExecutionRunID {
		return temporal.NewNonRetryableApplicationError("the input is of another run of this stack's workflow, so it is "+
			"refused", string(deployments.CodeForbidden), nil)
	}
	if in.Since.IsZero() {
		in.Since = info.WorkflowStartTime
	}
	s := &stack{queue: queue{StackInput: in}, lock: workflow.NewMutex(ctx), former: hasFormerNames(ctx)}
	if err := s.listen(ctx); err != nil {
		return err
	}
	if err := s.loadActive(ctx); err != nil {
		return err
	}
	for {
		s.receive(ctx)
		if err := s.advance(ctx); err != nil {
			return err
		}
		if s.mayContinue(ctx) {
			s.Continues = info.WorkflowExecution.RunID
			return workflow.NewContinueAsNewError(ctx, deployments.WorkflowStack, s.StackInput)
		}
		if s.busy() {
			if err := s.awaitWork(ctx); err != nil {
				return err
			}
			continue
		}
		more, err := workflow.AwaitWithTimeout(ctx, linger, func() bool { return s.hasWork() || s.busy() })
		if err != nil {
			return err
		}
		if !more && workflow.AllHandlersFinished(ctx) {
			return nil
		}
	}
}

func (s *stack) listen(ctx workflow.Context) error {
	s.finished = signalsOf(ctx, deployments.SignalFinished)
	info := func() (deployments.StackInfo, error) { return s.info(), nil }
	return errors.Join(
		workflow.SetQueryHandler(ctx, deployments.QueryQueue, info),
		workflow.SetUpdateHandler(ctx, deployments.UpdateSubmit, s.handleSubmit),
		workflow.SetUpdateHandler(ctx, deployments.UpdateWithdraw, s.handleWithdraw),
		workflow.SetUpdateHandler(ctx, deployments.UpdateReserve, s.handleReserve),
		workflow.SetUpdateHandler(ctx, deployments.UpdateRecover, s.handleRecover),
	)
}

// readHead reads the head, and takes the stack's identity, the last version and the accepted requests from it.
func (s *stack) readHead(ctx workflow.Context) error {
	s.head = deployments.Head{}
	reading := withBriefRetries(onShared(ctx, "read the head"))
	err := execute(reading, deployments.ActivityReadHead, s.Stack).Get(ctx, &s.head)
	if err == nil {
		s.headReadAt = workflow.Now(ctx)
	}
	s.Version = max(s.Version, s.head.Next-1)
	if err == nil && s.StackID != s.head.StackID {
		s.StackID, s.Answered = s.head.StackID, append(s.head.Answered, s.Answered...)
	}
	s.head.Answered = nil
	return err
}

// handleSubmit handles the update submit.
func (s *stack) handleSubmit(ctx workflow.Context, r deployments.UpdateRequest) (deployments.Accepted, error) {
	ctx = s.handling(ctx)
	a, err := s.take(ctx, r)
	if err != nil {
		s.reject(r)
	}
	return a, err
}

// take submits a request once the queue can answer it.
func (s *stack) take(ctx workflow.Context, r deployments.UpdateRequest) (deployments.Accepted, error) {
	if a, ok := s.acceptedBefore(r.RequestID); ok {
		return a, nil
	}
	if err := s.ready(ctx); err != nil {
		return deployments.Accepted{}, err
	}
	if err := s.lock.Lock(ctx); err != nil {
		return deployments.Accepted{}, err
	}
	defer s.lock.Unlock()
	if err := s.refreshHead(ctx); err != nil {
		return deployments.Accepted{}, err
	}
	if a, ok := s.acceptedBefore(r.RequestID); ok {
		return a, nil
	}
	if s.trouble != nil {
		return deployments.Accepted{}, s.trouble.reason
	}
	a, err := s.submit(r, s.head.Version, workflow.Now(ctx))
	return a, clientError(err)
}

// headWhileBusy is the change by which the head is read for a request that will wait, too.
const headWhileBusy = "head-while-busy"

// refreshHead reads the head again if it may have changed. It may name an update that this workflow does not know,
// because Temporal's database was set back: that has the stack. Likewise it may know versions that this workflow does
// not, though an update seems to run: none is given out again. The caller holds the lock.
func (s *stack) refreshHead(ctx workflow.Context) error {
	busy := s.busy()
	if s.headReadAt.Equal(workflow.Now(ctx)) ||
		busy && workflow.GetVersion(ctx, headWhileBusy, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return nil
	}
	if err := s.readHead(ctx); err != nil {
		return err
	}
	s.noteOver()
	if busy || s.head.Running == nil { // an import may have the stack, which has no workflow and ends by itself
		return nil
	}
	if s.adoptActive(ctx); s.Active != nil {
		s.watchActive(ctx)
	}
	return nil
}

// handleReserve handles the update reserve.
func (s *stack) handleReserve(ctx workflow.Context) (int, error) {
	ctx = s.handling(ctx)
	if err := s.ready(ctx); err != nil {
		return 0, err
	}
	if _, err := workflow.AwaitWithTimeout(ctx, busyGrace, func() bool { return !s.busy() }); err != nil {
		return 0, err
	}
	if err := s.lock.Lock(ctx); err != nil {
		return 0, err
	}
	defer s.lock.Unlock()
	if err := s.refreshHead(ctx); err != nil {
		return 0, err
	}
	version, err := s.reserveVersion()
	return version, clientError(err)
}

// disconnected returns a context that a cancel of the workflow does not end: handlers answer after it, too.
func disconnected(ctx workflow.Context) workflow.Context {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return ctx
}

// handling returns the context of a handler, which a cancel of the workflow does not end either.
func (s *stack) handling(ctx workflow.Context) workflow.Context {
	return namesOf(disconnected(ctx), s.former)
}

// handleWithdraw handles the update withdraw.
func (s *stack) handleWithdraw(ctx workflow.Context, w deployments.Withdrawal) (bool, error) {
	err := workflow.Await(disconnected(ctx), func() bool { return s.loaded || s.trouble != nil })
	return err == nil && s.remove(w.Update, "cancelled before it began"), err
}

// clientError returns an error that the service can translate back to its code and message.
func clientError(err error) error {
	if err == nil {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), string(deployments.CodeOf(err)), nil)
}

// hasWork reports whether the loop has something to do.
func (s *stack) hasWork() bool {
	return s.finished.waiting() > 0 || len(s.withdrawn) > 0 || s.Active == nil && len(s.Queue) > 0 ||
		s.watch != nil && s.watch.closed.IsReady() || s.trouble != nil && s.retryDue()
}

// receive handles the signals of updates that have committed.
func (s *stack) receive(ctx workflow.Context) {
	for {
		var f deployments.UpdateFinished
		if !s.finished.take(&f) {
			return
		}
		s.freeStack(ctx, f.Update, f.Settle)
	}
}

// advance recovers an active update that closed without a commit, starts the workflows of withdrawn updates, which only
// report that, and starts the next update.
func (s *stack) advance(ctx workflow.Context) error {
	if s.watch != nil && s.watch.closed.IsReady() {
		s.watchEnded(ctx)
	}
	if s.Active != nil && s.watch == nil && s.retryDue() {
		if err := s.recover(ctx); err != nil {
			return err
		}
	}
	for len(s.withdrawn) > 0 {
		in := s.withdrawn[0]
		s.withdrawn = s.withdrawn[1:]
		s.startUpdate(ctx, in).cancel()
	}
	if s.next(workflow.Now(ctx)) {
		s.watch = s.startUpdate(ctx, deployments.UpdateInput{Update: s.Active.Update, Request: s.Active.Request})
	}
	return nil
}

// startUpdate starts an Update workflow that outlives this run. If one with that id exists, it is watched.
func (s *stack) startUpdate(ctx workflow.Context, in deployments.UpdateInput) *watch {
	childCtx, cancel := workflow.WithCancel(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            deployments.UpdateWorkflowID(in.Update),
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary:         clip(Summary(in.Update, in.Request), summaryBytes),
		TypedSearchAttributes: SearchAttributes(in.Update, in.Request),
		Priority:              Priority(in.Update.Organization, in.Request.Scheduled),
	}))
	child := workflow.ExecuteChildWorkflow(childCtx, workflowOf(in.Request), in)
	if err := child.GetChildWorkflowExecution().Get(ctx, nil); temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		cancel()
		return s.awaitClosed(ctx, in.Update)
	}
	_ = cancel // the update does not end with the watch
	return &watch{closed: child, cancel: func() {}}
}

// workflowOf returns the workflow that executes an update, or keeps the stack for the client that does.
func workflowOf(r deployments.UpdateRequest) string {
	if r.Lease != nil {
		return deployments.WorkflowLease
	}
	return deployments.WorkflowUpdate
}

// watchActive watches the active update, which is not a child of this run.
func (s *stack) watchActive(ctx workflow.Context) { s.watch = s.awaitClosed(ctx, s.Active.Update) }

func (s *stack) awaitClosed(ctx workflow.Context, u deployments.UpdateName) *watch {
	ctx, cancel := workflow.WithCancel(onShared(ctx, "wait for update "+u.Version))
	ctx = workflow.WithHeartbeatTimeout(workflow.WithStartToCloseTimeout(ctx, longestWait), heartbeat)
	return &watch{closed: execute(ctx, deployments.ActivityAwaitWorkflow, u), cancel: cancel, polled: true}
}

// mayContinue reports whether the history is long and the input of the next run would hold everything.
func (s *stack) mayContinue(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return (info.GetCurrentHistoryLength() > stackEvents || info.GetContinueAsNewSuggested()) &&
		workflow.AllHandlersFinished(ctx) && s.finished.waiting() == 0 && len(s.withdrawn) == 0
}
