package activities

import (
	"context"
	"errors"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/statestore"
)

// BeginLease claims the stack for an update that its client executes. It may run more than once.
func (a *Activities) BeginLease(ctx context.Context, in deployments.UpdateInput) error {
	return failureAtOnce(a.beginLease(ctx, in))
}

func (a *Activities) beginLease(ctx context.Context, in deployments.UpdateInput) error {
	u, r := in.Update, in.Request
	if err := a.Store.PutRequest(ctx, u, r); err != nil {
		return err
	}
	if err := a.permit(ctx, deployments.ClaimInput{Update: u, Request: r, Number: 1}); err != nil {
		return err
	}
	claim, err := a.Store.Claim(ctx, statestore.Claimant{
		Update: u, RequestID: r.RequestID, Writer: statestore.LeaseWriter,
	})
	if err != nil {
		return err
	}
	info, err := a.Store.Info(ctx, u)
	if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
		return err
	}
	if !info.Ended.IsZero() { // it was ended while this claim was under way
		if err := a.Store.Commit(ctx, claim, statestore.Written{}); err != nil {
			return err
		}
		return deployments.Errorf(deployments.CodeConflict, "update %s is over: %s", u, info.Status)
	}
	return a.Store.PutInfo(ctx, running(u, r, a.started(ctx, u)))
}

// EndLease commits what the client of an update has written, and ends the update. It may run more than once.
func (a *Activities) EndLease(ctx context.Context, in deployments.LeaseEnd) (deployments.UpdateInfo, error) {
	defer Beat(ctx)()
	info, err := a.endLease(ctx, in)
	return info, failureUntilStored(err)
}

func (a *Activities) endLease(ctx context.Context, in deployments.LeaseEnd) (deployments.UpdateInfo, error) {
	request, err := a.Store.Request(ctx, in.Update)
	if err != nil {
		return deployments.UpdateInfo{}, err
	}
	info, err := a.Store.Info(ctx, in.Update)
	if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
		return info, err
	}
	base := 0
	if info.Ended.IsZero() {
		info = running(in.Update, request, a.started(ctx, in.Update))
		written, err := a.Store.FinishLease(ctx, in.Update)
		if err != nil && deployments.CodeOf(err) == deployments.CodeInvalid { // a client that does not keep to the format
			in.Status, in.Error, err = engine.StatusFailed, "what the client wrote cannot be a state: "+err.Error(), nil
		}
		if err != nil {
			return info, err
		}
		base = written.Base
		if info.Changes, err = a.Store.LeaseChanges(ctx, in.Update); err != nil {
			return info, err
		}
		info.Status, info.Error, info.Resources = string(in.Status), in.Error, written.Resources
		info.Ended = time.Now().UTC()
		if err := a.Store.PutInfo(ctx, info); err != nil {
			return info, err
		}
	}
	end, err := eventlog.Encode([]deployments.WatchEvent{{End: &info}})
	if err != nil {
		return info, err
	}
	told := a.tell(ctx, info, request)
	last := statestore.Part{Update: in.Update, Stream: eventlog.RunStream, Number: 1}
	if err := errors.Join(a.Store.AppendEvents(ctx, last, end), <-told); err != nil {
		return info, err
	}
	go a.tidy(context.WithoutCancel(ctx), deployments.CommitInput{Update: in.Update, Base: base},
		request)
	return info, nil
}
