package service

import (
	"context"
	"errors"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/workflows"
)

// Service implements deployments.Service.
type Service struct {
	store
	temporal client.Client
	readers  Readers
	feeds    feeds
	// Away says which part of the service does not answer now, if one does not, and returns at once; it may be nil.
	Away func() error
	// Unattended is called when something is found to wait for a worker; it may be nil.
	Unattended func()
}

// Readers read what the client's cluster keeps sealed: payloads and failures, which open for the workflow that they
// are of.
type Readers struct {
	Data      converter.DataConverter
	Failures  converter.FailureConverter
	Namespace string
}

// of gives the readers of what a workflow has.
func (r Readers) of(workflow string) Readers {
	at := converter.WorkflowSerializationContext{Namespace: r.Namespace, WorkflowID: workflow}
	r.Data = converter.WithDataConverterSerializationContext(r.Data, at)
	r.Failures = converter.WithFailureConverterSerializationContext(r.Failures, at)
	return r
}

// New makes the service of a Temporal client and a store.
func New(c client.Client, s *statestore.Store, r Readers) *Service {
	return &Service{store: store{s}, temporal: c, readers: r}
}

var _ deployments.Service = (*Service)(nil)

// Submit hands the request to its stack's queue. A preview does not queue: it reads the last checkpoint.
func (s *Service) Submit(ctx context.Context, r deployments.UpdateRequest) (deployments.Accepted, error) {
	if err := r.Validate(); err != nil {
		return deployments.Accepted{}, err
	}
	if _, err := s.Head(ctx, r.Stack); err != nil {
		return deployments.Accepted{}, err
	}
	if r.DryRun {
		return s.preview(ctx, r)
	}
	var accepted deployments.Accepted
	err := s.request(ctx, r.Stack, deployments.UpdateSubmit, &accepted, r)
	return accepted, failure("submit the update", err)
}

// reserve has the stack's queue give out a version, so that no update gets it.
func (s *Service) reserve(ctx context.Context, name deployments.StackName) (int, error) {
	var version int
	err := s.request(ctx, name, deployments.UpdateReserve, &version)
	return version, failure("ask for the stack's next version", err)
}

// submitAttempts bounds how often a request is handed to a queue that is just closing; a request's id makes it one.
const submitAttempts = 5

// request asks the stack's workflow for an answer.
func (s *Service) request(
	ctx context.Context, name deployments.StackName, update string, answer any, args ...any,
) error {
	for attempt := 1; ; attempt++ {
		if err := s.requestOnce(ctx, name, update, answer, args); attempt == submitAttempts || !closing(err) {
			return err
		}
	}
}

// closing reports that the request reached a Stack workflow in the moment in which it ended or continued as new.
func closing(err error) bool {
	var app *temporal.ApplicationError
	var unknown *serviceerror.NotFound
	return errors.As(err, &unknown) || errors.As(err, &app) && app.Type() == "AcceptedUpdateCompletedWorkflow"
}

// requestOnce starts the stack's workflow if it does not run. CodeNoWorker when no worker takes it up; the request may
// be answered all the same as soon as there is one.
func (s *Service) requestOnce(
	ctx context.Context, name deployments.StackName, update string, answer any, args []any,
) error {
	queue, err := s.TaskQueue(ctx, name.Organization)
	if err != nil {
		return err
	}
	patience := unanswered
	if update == deployments.UpdateSubmit {
		patience = unattended
	}
	ctx, cancel := s.whileAttended(ctx, deployments.StackWorkflowID(name), patience)
	defer cancel()
	start := s.temporal.NewWithStartWorkflowOperation(
		stackOptions(name, queue), deployments.WorkflowStack, deployments.StackInput{Stack: name})
	handle, err := s.temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: deployments.StackWorkflowID(name), // what is asked is sealed for it
			UpdateName: update, Args: args, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err == nil {
		err = handle.Get(ctx, answer)
	}
	return caused(ctx, err)
}

// stackOptions start a stack's workflow, if it does not run.
func stackOptions(name deployments.StackName, queue string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: deployments.StackWorkflowID(name), TaskQueue: queue,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		TypedSearchAttributes:    workflows.StackAttributes(name),
		StaticSummary:            "updates of " + name.Project + "/" + name.Stack,
	}
}

// preview starts the Update workflow itself, under a name made from the request's id.
func (s *Service) preview(ctx context.Context, r deployments.UpdateRequest) (deployments.Accepted, error) {
	u := deployments.PreviewName(r)
	queue, err := s.TaskQueue(ctx, r.Stack.Organization)
	if err != nil {
		return deployments.Accepted{}, err
	}
	_, err = s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: deployments.UpdateWorkflowID(u), TaskQueue: queue,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		TypedSearchAttributes:    workflows.SearchAttributes(u, r),
		StaticSummary:            workflows.Summary(u, r),
		Priority:                 workflows.Priority(r.Scheduled),
	}, deployments.WorkflowUpdate, deployments.UpdateInput{Update: u, Request: r})
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &started) {
		err = nil // the same request again
	}
	return deployments.Accepted{Update: u}, failure("start the preview", err)
}

// Cancel asks the update to end; one that still waits is taken out of its queue. Once it returns, nothing new starts:
// the Run knows before it hears of anything else.
func (s *Service) Cancel(ctx context.Context, u deployments.UpdateName, forced bool) error {
	if err := u.Validate(); err != nil {
		return err
	}
	waiting, unheard := s.withdraw(ctx, u)
	if waiting {
		return nil
	}
	cancelled := engine.Cancelled{Forced: forced}
	if err := s.temporal.SignalWorkflow(ctx, deployments.UpdateWorkflowID(u), "", deployments.SignalCancel,
		cancelled); err != nil {
		if deployments.CodeOf(unheard) == deployments.CodeNoWorker { // it may wait in the queue
			return unheard
		}
		return ended(u, failure("cancel the update", err))
	}
	err := s.temporal.SignalWorkflow(ctx, deployments.RunWorkflowID(u), "", deployments.SignalCancel, cancelled)
	if missing := (*serviceerror.NotFound)(nil); errors.As(err, &missing) {
		return nil // it has not begun, or has just ended
	}
	return failure("cancel the update", err)
}

// withdraw takes an update that waits out of its stack's queue; false when it does not wait there, or nobody answers.
func (s *Service) withdraw(ctx context.Context, u deployments.UpdateName) (waiting bool, err error) {
	if u.Number() == 0 {
		return false, nil
	}
	attended, stop := s.whileAttended(ctx, deployments.StackWorkflowID(u.StackName), unattended)
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

// Resolve answers an undecidable create. CodeConflict: the update does not wait for an answer about that resource.
func (s *Service) Resolve(ctx context.Context, u deployments.UpdateName, name, id string) error {
	if err := deployments.ValidateResolution(u, name, id); err != nil {
		return err
	}
	resolved := engine.Resolved{URN: urn.URN(name), ID: id}
	attended, stop := s.whileAttended(ctx, deployments.RunWorkflowID(u), unanswered)
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

// ended says that an update which cannot be found is over.
func ended(u deployments.UpdateName, err error) error {
	if deployments.CodeOf(err) == deployments.CodeNotFound && err != nil {
		return deployments.Errorf(deployments.CodeNotFound, "%s is not running", u)
	}
	return err
}

// failure translates an error of Temporal's; one that a workflow refused with, and one of the store's, keeps its code
// and sentence.
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
