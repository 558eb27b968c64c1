package activities

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// longestQuotaPause is the longest pause before an update asks again for a place in the quota of its organization.
const longestQuotaPause = 15 * time.Second

// withinQuota reports whether an update begins by the quota of its organization. It is refused, as CodeQuota, when that
// is used up, and postponed while as many updates run as may at a time. One that has its stack already has begun, and
// ends. A preview has no place: it changes nothing, and a worker divides its slots among organizations.
func (a *Activities) withinQuota(ctx context.Context, in deployments.ClaimInput) error {
	if in.Number > 1 {
		return nil
	}
	if free, err := a.free(ctx, in.Update, in.Request); err != nil || free {
		return err
	}
	continues, err := a.continues(ctx, in.Update, in.Request)
	if err == nil && !continues {
		err = a.Store.Organizations.MayBegin(ctx, in.Request)
	}
	if err != nil || !changesHead(in.Update, in.Request) {
		return err
	}
	why, err := a.Store.Organizations.PlaceUpdate(ctx, in.Update)
	if err != nil || why == "" {
		return err
	}
	return failure.Later(ctx, why, longestQuotaPause)
}

const (
	// leasePlacePatience is how long one attempt to begin a lease waits for a place in the quota, less than an activity
	// may take; there are five. leasePlaceEvery is the pause between two looks.
	leasePlacePatience = 90 * time.Second
	leasePlaceEvery    = time.Second
)

// placeLease is withinQuota of an update that its client executes. It waits here, because the client does so too, and
// nobody repeats its call.
func (a *Activities) placeLease(ctx context.Context, in deployments.UpdateInput) error {
	if free, err := a.free(ctx, in.Update, in.Request); err != nil || free {
		return err
	}
	if err := a.Store.Organizations.MayBegin(ctx, in.Request); err != nil {
		return err
	}
	for until := time.Now().Add(a.leasePlacePatience); ; {
		why, err := a.Store.Organizations.PlaceUpdate(ctx, in.Update)
		switch {
		case err != nil || why == "":
			return err
		case time.Now().After(until):
			return failure.Later(ctx, why, longestQuotaPause)
		}
		if err := failure.Pause(ctx, leasePlaceEvery); err != nil {
			return err
		}
	}
}

// free reports whether no quota holds an update up: its organization has none, or it has begun.
func (a *Activities) free(ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest) (bool, error) {
	if q, err := a.Store.Organizations.Quota(ctx, u.Organization); err == nil && len(q) == 0 {
		return true, nil
	}
	return a.hasStack(ctx, u, r)
}

// continues reports whether an update goes on with one that no worker could continue: it has begun, and is not left
// half done. The id of its request, which a client may have chosen, only says where to look for that.
func (a *Activities) continues(
	ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest,
) (bool, error) {
	const after = " after "
	at := strings.LastIndex(r.RequestID, after)
	if at < 0 {
		return false, nil
	}
	former := deployments.UpdateName{StackName: u.StackName, Version: r.RequestID[at+len(after):]}
	if former.Validate() != nil || former.Number() == 0 {
		return false, nil
	}
	info, err := a.Store.Updates.Info(ctx, former)
	if err == nil && (info.Status != string(deployments.StatusMigrated) || info.Next != u.Version) {
		return false, nil
	}
	var asked deployments.UpdateRequest
	if err == nil {
		asked, err = a.Store.Updates.Request(ctx, former)
	}
	if deployments.CodeOf(err) == deployments.CodeNotFound || errors.Is(err, bucket.ErrAbsent) {
		return false, nil // it never came to a worker
	}
	return err == nil && asked.RequestID == r.RequestID[:at], err
}

// hasStack reports whether an update that changes its stack has it.
func (a *Activities) hasStack(
	ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest,
) (bool, error) {
	if !changesHead(u, r) {
		return false, nil
	}
	head, err := a.Store.Head(ctx, u.StackName)
	return err == nil && head.Active != nil && head.Active.Version == u.Version, err
}

// countMinutes counts for how long a worker has hosted an update that has ended, also when it is ended in the place of
// its workflow. One that its client has executed had no worker.
func (a *Activities) countMinutes(
	ctx context.Context, info deployments.UpdateInfo, request deployments.UpdateRequest,
) error {
	if request.Lease != nil {
		return nil
	}
	return a.Store.Organizations.CountMinutes(ctx, info.Update, info.Took())
}
