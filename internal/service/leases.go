package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/updates"
)

var (
	_ deployments.Leases      = (*Service)(nil)
	_ deployments.LeaseTokens = (*Service)(nil)
	_ deployments.LeasedState = (*Service)(nil)
)

// leasePollFirst and leasePollLast limit the pauses between reads of the head while an update waits for its stack. When
// more than leasePollFew wait at a server, the pauses get longer, up to leasePollMost, so that they slow nobody down.
// leaseInfoEvery is the least pause between looks at what became of the update meanwhile.
const (
	leasePollFirst, leasePollLast = 5 * time.Millisecond, 500 * time.Millisecond
	leasePollFew, leasePollMost   = 20, 3 * time.Second
	leaseInfoEvery                = 250 * time.Millisecond
)

// CreateUpdate stores a request of a client that executes the update itself.
func (s *Service) CreateUpdate(ctx context.Context, r deployments.UpdateRequest) (string, error) {
	id := uuid.NewString()
	r.RequestID, r.OnBusy = id, deployments.OnBusyQueue
	if r.Lease == nil {
		r.Lease = &deployments.Lease{}
	}
	if r.Lease.Duration = s.LeaseDuration; r.Lease.Duration == 0 {
		r.Lease.Duration = deployments.LeaseDuration
	}
	if err := r.Validate(); err != nil {
		return "", err
	}
	head, err := s.Head(ctx, r.Stack)
	if err != nil {
		return "", err
	}
	if err := s.Organizations.MayBegin(ctx, r); err != nil {
		return "", err
	}
	now := time.Now().UTC()
	r.Submitted = &deployments.Submission{StackID: head.ID, At: now}
	return id, s.Leases.PutCreated(ctx, deployments.CreatedUpdate{ID: id, Request: r, Created: now})
}

// CreatedUpdate returns an update that a client has created.
func (s *Service) CreatedUpdate(
	ctx context.Context, name deployments.StackName, id string,
) (deployments.CreatedUpdate, error) {
	return s.Leases.Created(ctx, name, id)
}

// StartUpdate begins an update that its client executes.
func (s *Service) StartUpdate(ctx context.Context, r deployments.StartRequest) (deployments.Leased, error) {
	name, id := r.Stack, r.ID
	created, queue, err := s.toStart(ctx, name, id)
	if err != nil {
		return deployments.Leased{}, err
	}
	request := within(ctx, created.Request)
	if request.Authority == nil || !slices.ContainsFunc(request.Authority.Holders, r.By.Is) {
		return deployments.Leased{}, deployments.Errorf(deployments.CodeNotFound, "the stack %s has no update %s of yours",
			name, id)
	}
	if time.Since(created.Created) > deployments.LeaseNotStarted {
		return deployments.Leased{}, deployments.Errorf(deployments.CodeNotFound,
			"the update %s of %s was created at %s and never started: run the command again", id, name,
			created.Created.Format(time.RFC3339))
	}
	if request.Submitted == nil {
		return deployments.Leased{}, deployments.Errorf(deployments.CodeNotFound, "the update %s of %s was created by an "+
			"earlier release: run the command again", id, name)
	}
	l := deployments.Leased{ID: id, Caller: r.By, Update: created.Name(), StackID: request.Submitted.StackID,
		Expires: time.Now().Add(request.Lease.Duration), Last: created.Created.Add(deployments.LeaseLife)}
	if request.DryRun {
		return l, s.startPreview(ctx, l, request)
	}
	var accepted deployments.Accepted
	until := time.Now()
	if r.Patience != nil {
		until = until.Add(r.Patience())
	}
	leave, err := s.turns.start(ctx, name.Organization)
	if err != nil {
		return l, failure("wait for a turn to start", err)
	}
	defer leave()
	if err := attended(ctx, until, r.NoWorker, func() error {
		request.Submitted = &deployments.Submission{StackID: request.Submitted.StackID, At: time.Now().UTC()}
		workers, err := queue()
		if err != nil {
			return err
		}
		return s.requestOn(ctx, name, workers, deployments.UpdateSubmit, &accepted, request)
	}); err != nil {
		return l, failure("submit the update", err)
	}
	l.Update = accepted.Update
	for l.Fence == 0 {
		created.Version = l.Update.Number()
		noting := s.noteStart(ctx, created)
		next, h, err := s.awaitLease(ctx, l.Update, until, leave)
		if unnoted := <-noting; err == nil {
			err = unnoted
		}
		if err != nil { // nobody renews it
			_ = s.Cancel(context.WithoutCancel(ctx), l.Update, false)
			return l, err
		}
		l.Update, l.Fence, l.Tags = next, h.Fence, h.Tags
	}
	l.Expires = time.Now().Add(request.Lease.Duration)
	return l, nil
}

// within returns a request with the place of the call that submits it in its trace.
func within(ctx context.Context, r deployments.UpdateRequest) deployments.UpdateRequest {
	r.Trace = tracing.Place(ctx)
	return r
}

// attended repeats a call until a worker takes it up, or until a time: the stock CLI repeats no such call. It calls
// waits, if that is set, with each error that it waits out.
func attended(ctx context.Context, until time.Time, waits func(error), call func() error) error {
	for {
		err := call()
		if deployments.CodeOf(err) != deployments.CodeNoWorker || ctx.Err() != nil || !time.Now().Before(until) {
			return err
		}
		if waits != nil {
			waits(err)
		}
	}
}

// RenewLease sets the end of a lease later.
func (s *Service) RenewLease(
	ctx context.Context, l deployments.Leased, d time.Duration,
) (deployments.Leased, error) {
	left := time.Until(l.Last)
	if left <= 0 {
		return l, deployments.Errorf(deployments.CodeForbidden, "update %s was begun more than %s ago, and no lease lasts "+
			"longer: run the command again, which continues from what is done", l.Update, deployments.LeaseLife)
	}
	if err := s.mayDeployStill(ctx, l); err != nil {
		return l, err
	}
	if d <= 0 || d > left {
		d = left
	}
	if l.Preview() {
		l.Expires = time.Now().Add(min(d, deployments.LeaseDuration))
		return l, s.leaseHasEnded(ctx, l)
	}
	err := s.leaseUpdate(ctx, l.Update, deployments.UpdateRenew, &l.Expires, d)
	if deployments.CodeOf(err) == deployments.CodeNotFound && err != nil {
		err = leaseEnded(l.Update)
	}
	return l, err
}

// mayDeployStill reports, as CodeForbidden, that whoever started an update may not deploy to its stack any more.
func (s *Service) mayDeployStill(ctx context.Context, l deployments.Leased) error {
	held := deployments.Everything()
	held.Holders = []deployments.Holder{l.Caller}
	now, err := s.CurrentAuthority(ctx, held)
	if err == nil && !now.May(deployments.RoleDeployer, l.Update.StackName) {
		err = deployments.Errorf(deployments.CodeForbidden, "the token %s may not deploy to %s any more: the lease of "+
			"update %s is not renewed", l.Caller.Token, l.Update.StackName, l.Update.Version)
	}
	return err
}

// leaseHasEnded reports, as CodeForbidden, that an update has ended, and its lease with it, or that its stack is gone,
// whatever has its name now.
func (s *Service) leaseHasEnded(ctx context.Context, l deployments.Leased) error {
	there, err := s.IsStack(ctx, l.Update.StackName, l.StackID)
	if notFound(err) || err == nil && l.StackID != "" && !there {
		return leaseEnded(l.Update)
	}
	if err != nil {
		return err
	}
	info, err := s.Updates.Info(ctx, l.Update)
	switch {
	case notFound(err):
		return nil // it has not begun
	case err == nil && !info.Ended.IsZero():
		return leaseEnded(l.Update)
	}
	return err
}

func leaseEnded(u deployments.UpdateName) error {
	return deployments.Errorf(deployments.CodeForbidden, "the lease of update %s has ended", u)
}

// CompleteUpdate ends an update that its client has executed.
func (s *Service) CompleteUpdate(
	ctx context.Context, l deployments.Leased, status engine.Status,
) (info deployments.UpdateInfo, err error) {
	if l.Preview() {
		return s.completePreview(ctx, l, status)
	}
	defer s.turns.end()()
	if err := s.Leases.EndJournal(ctx, l); err != nil {
		return info, err
	}
	err = s.leaseUpdate(ctx, l.Update, deployments.UpdateComplete, &info, status)
	if err != nil && deployments.CodeOf(err) == deployments.CodeNotFound { // its workflow has ended
		info, err = s.Updates.Info(ctx, l.Update)
	}
	if err == nil && info.Status != string(status) {
		err = deployments.Errorf(deployments.CodeConflict, "update %s has ended already: %s, %s", l.Update, info.Status,
			info.Error)
	}
	return info, err
}

func (s *Service) completePreview(
	ctx context.Context, l deployments.Leased, status engine.Status,
) (deployments.UpdateInfo, error) {
	info, err := s.Updates.Info(ctx, l.Update)
	if err != nil || !info.Ended.IsZero() {
		return info, errors.Join(err, s.UpdateEnded(ctx, info, false))
	}
	if info.Changes, err = s.Leases.LeaseChanges(ctx, l.Update); err != nil {
		return info, err
	}
	info.Status, info.Ended = string(status), time.Now().UTC()
	end, err := eventlog.Encode([]deployments.WatchEvent{{End: &info}})
	if err != nil {
		return info, err
	}
	if err := s.Updates.AppendEvents(ctx, updates.Part{Update: l.Update, Stream: eventlog.RunStream, Number: 1},
		end); err != nil {
		return info, err
	}
	if err := s.Updates.PutInfo(ctx, info); err != nil {
		return info, err
	}
	if s.PreviewEnded != nil {
		s.PreviewEnded(info)
	}
	return info, s.UpdateEnded(ctx, info, false)
}

// leaseCallPatience is how long a renewal or the end of a lease waits for a worker. Both may be repeated.
const leaseCallPatience = time.Minute

// leaseUpdate calls an update handler of the workflow of a lease.
func (s *Service) leaseUpdate(
	ctx context.Context, u deployments.UpdateName, update string, answer any, args ...any,
) error {
	err := attended(ctx, time.Now().Add(leaseCallPatience), nil, func() error {
		served, stop := s.whileServed(ctx, deployments.UpdateWorkflowID(u), noAnswerAfter)
		defer stop()
		handle, err := s.temporal.UpdateWorkflow(served, client.UpdateWorkflowOptions{
			WorkflowID: deployments.UpdateWorkflowID(u), UpdateName: update, Args: args,
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = handle.Get(served, answer)
		}
		return caused(served, err)
	})
	if missing := (*serviceerror.NotFound)(nil); closing(err) || errors.As(err, &missing) {
		return deployments.Errorf(deployments.CodeNotFound, "update %s is not running", u)
	}
	return failure(update+" the lease", err)
}

// ImportAsIs makes a deployment of the stock CLI a stack's next version, without reading its secrets.
func (s *Service) ImportAsIs(ctx context.Context, r deployments.ImportRequest) (int, error) {
	version, err := s.store.Store.ImportAsIs(ctx, s.asIs(r), r.Deployment)
	if err != nil {
		return version, err
	}
	return version, s.recordImport(ctx, r, version)
}

// CreateAsIs creates a stack with a deployment of the stock CLI, as ImportAsIs reads it. There is no stack if that
// cannot be its state.
func (s *Service) CreateAsIs(ctx context.Context, r deployments.ImportRequest, tags map[string]string) error {
	version, err := s.store.Store.CreateAsIs(ctx, s.asIs(r), tags, r.Deployment)
	if err != nil {
		return err
	}
	s.tellStack(ctx, r.Stack, deployments.EventStackCreated)
	return s.recordImport(ctx, r, version)
}

func (s *Service) asIs(r deployments.ImportRequest) statestore.Exchange {
	return statestore.Exchange{Stack: r.Stack, Secrets: r.Secrets, Reserve: s.reserve, Forget: r.Forget}
}

// recordImport adds the version that an import has made to the stack's history.
func (s *Service) recordImport(ctx context.Context, r deployments.ImportRequest, version int) error {
	return s.record(ctx, r.Stack, version, deployments.UpdateInfo{Kind: engine.KindImport, Initiator: r.Initiator})
}
