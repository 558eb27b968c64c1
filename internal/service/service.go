package service

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/workflows"
)

// Service implements deployments.Service.
type Service struct {
	store
	rights
	operated
	uploads
	updated
	leased
	encrypts
	temporal client.Client
	readers  Readers
	feeds    feeds
	turns    *startTurns
	starting atomic.Int64              // updates of clients that wait for their stacks
	away     atomic.Pointer[time.Time] // when something was last found not to answer
	// Unavailable reports, without waiting, which part of the service does not answer; it may be nil.
	Unavailable func() error
	// Unattended is called when a workflow or an activity is found to wait for a worker, with whether its task queue has
	// any; it may be nil.
	Unattended func(attended bool)
	// PreviewEnded is called with each preview of a client that has ended, which no worker takes part in; it may be nil.
	PreviewEnded func(deployments.UpdateInfo)
	// Identities verifies identity tokens; nil: none are exchanged.
	Identities Identities
	// LeaseDuration is that of updates that clients execute; 0 means deployments.LeaseDuration.
	LeaseDuration time.Duration
}

// Identities verifies identity tokens.
type Identities interface {
	// Verify returns what an issuer says by a token; CodeUnauthorized when the token is not good.
	Verify(ctx context.Context, issuer, token string) (deployments.Identity, error)
}

// Readers open the sealed payloads and failures of a workflow.
type Readers struct {
	Data      converter.DataConverter
	Failures  converter.FailureConverter
	Namespace string
}

// of returns the readers for a workflow.
func (r Readers) of(workflow string) Readers {
	at := converter.WorkflowSerializationContext{Namespace: r.Namespace, WorkflowID: workflow}
	r.Data = converter.WithDataConverterSerializationContext(r.Data, at)
	r.Failures = converter.WithFailureConverterSerializationContext(r.Failures, at)
	return r
}

// New returns the service of a Temporal client and a store.
func New(c client.Client, s *statestore.Store, r Readers) *Service {
	return &Service{store: store{s}, rights: rights{s.Access}, operated: operated{s.Organizations},
		uploads: uploads{s.Programs}, updated: updated{s.Updates}, leased: leased{s.Leases},
		encrypts: encrypts{s.Secrets},
		temporal: c, readers: r, turns: newStartTurns()}
}

var _ deployments.Service = (*Service)(nil)

// Submit sends the request to its stack's queue. A preview does not queue: it reads the last checkpoint.
func (s *Service) Submit(ctx context.Context, r deployments.UpdateRequest) (deployments.Accepted, error) {
	if err := r.Validate(); err != nil {
		return deployments.Accepted{}, err
	}
	var tags map[string]string
	if !r.DryRun {
		var err error
		if tags, err = r.Tags(); err != nil {
			return deployments.Accepted{}, err
		}
	}
	head, queue, err := s.toSubmit(ctx, r.Stack, tags)
	if err != nil {
		return deployments.Accepted{}, err
	}
	if err := s.Organizations.MayBegin(ctx, r); err != nil {
		return deployments.Accepted{}, err
	}
	r.Submitted = &deployments.Submission{StackID: head.ID, At: time.Now().UTC()}
	r.Trace = tracing.Place(ctx)
	if r.DryRun {
		return s.preview(ctx, r, queue)
	}
	var accepted deployments.Accepted
	err = s.requestOn(ctx, r.Stack, queue, deployments.UpdateSubmit, &accepted, r)
	return accepted, failure("submit the update", err)
}

// toSubmit reads at once what a submission needs of the bucket: the head of the stack, which gets the tags, and the
// task queue of the workers.
func (s *Service) toSubmit(
	ctx context.Context, name deployments.StackName, tags map[string]string,
) (head statestore.Head, queue string, err error) {
	reading, reads := panics.NewGroup(ctx, "submitting an update")
	reading.Go(func() (err error) {
		head, err = s.store.Tagged(reads, name, tags)
		return err
	})
	reading.Go(func() (err error) {
		queue, err = s.Organizations.TaskQueue(reads, name.Organization)
		return err
	})
	reading.Go(func() error {
		_, _ = s.store.Organizations.Quota(reads, name.Organization) // who asks next meets the error
		return nil
	})
	return head, queue, reading.Wait()
}

// reserve makes the stack's queue give out a version, which no update gets.
func (s *Service) reserve(ctx context.Context, name deployments.StackName) (int, error) {
	var version int
	err := s.request(ctx, name, deployments.UpdateReserve, &version)
	return version, failure("ask for the stack's next version", err)
}

// submitAttempts limits how often a request is sent to a queue that is just closing; the request id makes that
// idempotent.
const submitAttempts = 5

// request calls an update handler of the stack's workflow.
func (s *Service) request(
	ctx context.Context, name deployments.StackName, update string, answer any, args ...any,
) error {
	queue, err := s.Organizations.TaskQueue(ctx, name.Organization)
	if err != nil {
		return err
	}
	return s.requestOn(ctx, name, queue, update, answer, args...)
}

// requestOn is request for who has just read the task queue of the stack's workers.
func (s *Service) requestOn(
	ctx context.Context, name deployments.StackName, queue, update string, answer any, args ...any,
) error {
	for attempt := 1; ; attempt++ {
		err := s.requestOnce(ctx, name, queue, update, answer, args)
		again := closing(err)
		if deployments.CodeOf(err) == deployments.CodeNoWorker {
			again, _ = s.endLeftBehind(ctx, name) // otherwise the caller learns that no worker takes it up
		}
		if attempt == submitAttempts || !again {
			return err
		}
		if queue, err = s.Organizations.TaskQueue(ctx, name.Organization); err != nil {
			return err
		}
	}
}

// closing reports that a request reached a Stack workflow just as it ended or continued as new.
func closing(err error) bool {
	var app *temporal.ApplicationError
	var unknown *serviceerror.NotFound
	return errors.As(err, &unknown) || errors.As(err, &app) && app.Type() == "AcceptedUpdateCompletedWorkflow"
}

// requestOnce starts the stack's workflow if it does not run. CodeNoWorker when no worker takes the workflow's task;
// the request may still be handled once there is one.
func (s *Service) requestOnce(
	ctx context.Context, name deployments.StackName, queue, update string, answer any, args []any,
) error {
	patience := noAnswerAfter
	if update == deployments.UpdateSubmit {
		patience = noWorkerAfter
	}
	ctx, cancel := s.whileServed(ctx, deployments.StackWorkflowID(name), patience)
	defer cancel()
	start := s.temporal.NewWithStartWorkflowOperation(
		stackOptions(name, queue), deployments.WorkflowStack, deployments.StackInput{Stack: name})
	handle, err := s.temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: deployments.StackWorkflowID(name), // the arguments are sealed for it
			UpdateName: update, Args: args, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err == nil {
		err = handle.Get(ctx, answer)
	}
	return caused(ctx, err)
}

// stackOptions are the options that start a stack's workflow if it does not run.
func stackOptions(name deployments.StackName, queue string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: deployments.StackWorkflowID(name), TaskQueue: queue,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		TypedSearchAttributes:    workflows.StackAttributes(name),
		StaticSummary:            "updates of " + name.Project + "/" + name.Stack,
		Priority:                 workflows.Priority(name.Organization, false),
	}
}

// preview starts the Update workflow itself, with a name made from the request's id.
func (s *Service) preview(
	ctx context.Context, r deployments.UpdateRequest, queue string,
) (deployments.Accepted, error) {
	u := deployments.PreviewName(r)
	_, err := s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: deployments.UpdateWorkflowID(u), TaskQueue: queue,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		TypedSearchAttributes:    workflows.SearchAttributes(u, r),
		StaticSummary:            workflows.Summary(u, r),
		Priority:                 workflows.Priority(u.Organization, r.Scheduled),
	}, deployments.WorkflowUpdate, deployments.UpdateInput{Update: u, Request: r})
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &started) {
		err = nil // a repeated request
	}
	return deployments.Accepted{Update: u}, failure("start the preview", err)
}

// Cancel cancels an update; a waiting one is withdrawn. Once it returns, nothing new starts, because the Run handles
// the cancel before any later message.
func (s *Service) Cancel(ctx context.Context, u deployments.UpdateName, forced bool) error {
	if err := u.Validate(); err != nil {
		return err
	}
	waiting, noAnswer := s.withdraw(ctx, u)
	if waiting {
		return nil
	}
	cancelled := engine.Cancelled{Forced: forced}
	if err := s.temporal.SignalWorkflow(ctx, deployments.UpdateWorkflowID(u), "", deployments.SignalCancel,
		cancelled); err != nil {
		if deployments.CodeOf(noAnswer) == deployments.CodeNoWorker { // it may wait in the queue
			return noAnswer
		}
		return ended(u, failure("cancel the update", err))
	}
	err := s.temporal.SignalWorkflow(ctx, deployments.RunWorkflowID(u), "", deployments.SignalCancel, cancelled)
	if missing := (*serviceerror.NotFound)(nil); errors.As(err, &missing) {
		return nil // it has not begun, or has just ended
	}
	return failure("cancel the update", err)
}

// withdraw takes a waiting update out of its stack's queue; false when it does not wait, or nothing answers.
func (s *Service) withdraw(ctx context.Context, u deployments.UpdateName) (waiting bool, err error) {
	if u.Number() == 0 {
		return false, nil
	}
	attended, stop := s.whileServed(ctx, deployments.StackWorkflowID(u.StackName), noWorkerAfter)
	defer stop()
	handle, err := s.temporal.UpdateWorkflow(attended, client.UpdateWorkflowOptions{
		WorkflowID: deployments.StackWorkflowID(u.StackName), UpdateName: deployments.UpdateWithdraw,
		Args: []any{deployments.Withdrawal{Update: u}}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(attended, &waiting)
	}
	err = caused(attended, err)
	return err == nil && waiting, err
}

// Resolve answers an undecidable create. CodeConflict: the update does not wait for that.
func (s *Service) Resolve(ctx context.Context, u deployments.UpdateName, name, id string) error {
	if err := deployments.ValidateResolution(u, name, id); err != nil {
		return err
	}
	resolved := engine.Resolved{URN: urn.URN(name), ID: id}
	attended, stop := s.whileServed(ctx, deployments.RunWorkflowID(u), noAnswerAfter)
	defer stop()
	handle, err := s.temporal.UpdateWorkflow(attended, client.UpdateWorkflowOptions{
		WorkflowID: deployments.RunWorkflowID(u), UpdateName: deployments.UpdateResolve, Args: []any{resolved},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(attended, nil)
	}
	return ended(u, failure("resolve", caused(attended, err)))
}

// ended returns the error about an update that cannot be found: it is over.
func ended(u deployments.UpdateName, err error) error {
	if deployments.CodeOf(err) == deployments.CodeNotFound && err != nil {
		return deployments.Errorf(deployments.CodeNotFound, "%s is not running", u)
	}
	return err
}

// failure translates an error of Temporal. Errors of workflows' handlers and of the store keep their code and message.
func failure(what string, err error) error {
	if err == nil {
		return nil
	}
	if own := (*deployments.Error)(nil); errors.As(err, &own) {
		return err
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return deployments.Errorf(deployments.Code(app.Type()), "%s", app.Message())
	}
	var unknown *serviceerror.NotFound
	if errors.As(err, &unknown) {
		return deployments.Errorf(deployments.CodeNotFound, "%s: %w", what, err)
	}
	if errors.Is(err, context.Canceled) {
		return deployments.Errorf(deployments.CodeCancelled, "%s: %w", what, err)
	}
	return deployments.Errorf(deployments.CodeUnavailable, "Temporal does not answer: %s: %w", what, err)
}
