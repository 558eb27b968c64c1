package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/leases"
	"github.com/deployctl/deployctl/statestore/updates"
)

// BeginLease claims the stack for an update that its client executes. It may run more than once.
func (a *Activities) BeginLease(ctx context.Context, in deployments.UpdateInput) error {
	return failure.AtOnce(a.beginLease(ctx, in))
}

func (a *Activities) beginLease(ctx context.Context, in deployments.UpdateInput) error {
	u, r := in.Update, in.Request
	if r.Lease == nil || r.Submitted == nil {
		return notSubmitted(u)
	}
	if err := a.mayBeginLease(ctx, in); err != nil {
		return err
	}
	if err := a.placeLease(ctx, in); err != nil {
		return err
	}
	claim, err := a.Store.Claim(ctx, claimant(ctx, u, r, leases.Writer))
	if err != nil {
		return err
	}
	_, err = a.describe(ctx, deployments.ClaimInput{Update: u, Request: r}, claim)
	return err
}

// mayBeginLease stores the request of an update that its client executes, and asks at once all that decides whether it
// begins. The claim needs the head next, and then the quota, so these are read, too.
func (a *Activities) mayBeginLease(ctx context.Context, in deployments.UpdateInput) error {
	u, r := in.Update, in.Request
	var held string
	asking, asks := panics.NewGroup(ctx, "beginning a lease")
	asking.Go(func() (err error) {
		held, err = a.heldBack(asks, u, r)
		return err
	})
	asking.Go(func() error { return a.request(asks, deployments.ClaimInput{Update: u, Request: r, Number: 1}) })
	asking.Go(func() error { a.Store.Expect(asks, u.StackName); return nil })
	asking.Go(func() error { _, _ = a.Store.Organizations.Quota(asks, u.Organization); return nil })
	err := asking.Wait()
	if err == nil && held != "" { // its client waits for an answer
		err = deployments.Errorf(deployments.CodeMaintenance, "%s: run the command again later", held)
	}
	return err
}

const (
	// leaseMemory is what the ends of leases take of a worker's memory at a time, and leasePatience how long one waits for
	// it before it is retried.
	leaseMemory   = 192 << 20
	leasePatience = 5 * time.Minute
	// largestSettled is how large a state is at most, as JSON, whose update settles by itself what a lease left: an update
	// has several copies of its state.
	largestSettled = 48 << 20
	// settledMemory is what the states of such updates take of a worker's memory at a time.
	settledMemory = 4 * largestSettled
)

// EndLease commits what the client of an update has written, and ends the update. It may run more than once. Its memory
// is shared with other ends by organization, because clients decide how much that is.
func (a *Activities) EndLease(ctx context.Context, in deployments.LeaseEnd) (deployments.LeaseEnded, error) {
	defer heartbeat.Beat(ctx)()
	claim := a.leases.Claim(in.Update.Organization, nil)
	defer claim.Release()
	ctx = mempool.With(ctx, claim, leasePatience)
	info, err := a.endLease(ctx, in)
	if err != nil {
		return deployments.LeaseEnded{UpdateInfo: info}, failure.UntilStored(err)
	}
	settle, err := Settling(ctx, a, info)
	return deployments.LeaseEnded{UpdateInfo: info, Settle: settle}, failure.UntilStored(err)
}

// Settling returns the request that settles what the client of an update began and did not end; nil when nothing is to
// be settled: the client said that the update succeeded, or something else is the stack's state by now. It is nil, too,
// when the service has no key of the stack, or its state is too large: then the error of the update says so.
//
// Of the configuration the request has what is no secret: the rules of settling. Providers have their own in the state.
// It has the authority of the update: what that could not read, the reads of this one cannot, either.
func Settling(ctx context.Context, a *Activities, info deployments.UpdateInfo) (*deployments.UpdateRequest, error) {
	u := info.Update
	if info.Status == string(engine.StatusSucceeded) {
		return nil, nil
	}
	left, err := a.Store.LeftPending(ctx, u)
	if err != nil || left.Operations == 0 || unsettled(left) != "" {
		return nil, err
	}
	r, err := a.Store.Updates.Request(ctx, u)
	if err != nil || r.Authority == nil {
		return nil, err
	}
	config := map[string]deployments.ConfigValue{}
	for key, v := range r.Config {
		if !v.Secret {
			config[key] = v
		}
	}
	return &deployments.UpdateRequest{
		Stack: u.StackName, RequestID: r.RequestID + "-settled", Kind: engine.KindRefresh, OnBusy: deployments.OnBusyQueue,
		Config: config, Settle: &engine.Settling{}, Initiator: r.Initiator, Authority: r.Authority,
		Submitted: r.Submitted,
		Message:   "Settles what update " + u.Version + " left pending",
	}, nil
}

// versionOfClient is the entry of an update's metadata with the version of the stock CLI.
const versionOfClient = "pulumi.version"

func (a *Activities) endLease(ctx context.Context, in deployments.LeaseEnd) (deployments.UpdateInfo, error) {
	request, info, err := a.toEnd(ctx, in.Update)
	if err != nil {
		return info, err
	}
	base := 0
	if info.Ended.IsZero() {
		since := info.Started
		if since.IsZero() {
			since = time.Now().UTC()
		}
		info = running(in.Update, request, since)
		counted := make(chan error, 1)
		go func() {
			counted <- panics.Do("counting the steps of "+in.Update.String(), func() (err error) {
				info.Changes, err = a.Store.Leases.LeaseChanges(ctx, in.Update)
				return err
			})
		}()
		client := ""
		if request.Lease != nil {
			client = request.Lease.Metadata[versionOfClient]
		}
		written, err := a.Store.FinishLease(ctx, in.Update, client)
		uncounted := <-counted
		if err != nil && deployments.CodeOf(err) == deployments.CodeInvalid { // a client that does not keep to the format
			in.Status, in.Error, err = engine.StatusFailed, "what the client wrote is not all in the state: "+err.Error(), nil
		}
		if err != nil {
			return info, err
		}
		base = written.Base
		if uncounted != nil {
			return info, uncounted
		}
		info.Status, info.Resources, info.Committed = string(in.Status), written.Resources, written.Version != 0
		if info.Error, err = a.unsettledError(ctx, in); err != nil {
			return info, err
		}
		info.Ended = time.Now().UTC()
		if err := a.Store.Updates.PutInfo(ctx, info); err != nil {
			return info, err
		}
	}
	end, err := eventlog.Encode([]deployments.WatchEvent{{End: &info}})
	if err != nil {
		return info, err
	}
	told := a.tell(ctx, info, request)
	last := updates.Part{Update: in.Update, Stream: eventlog.RunStream, Number: 1}
	if err := errors.Join(a.Store.Updates.AppendEvents(ctx, last, end), <-told); err != nil {
		return info, err
	}
	go a.tidy(context.WithoutCancel(ctx), deployments.CommitInput{Update: in.Update, Base: base}, request)
	return info, nil
}

// toEnd reads at once what the end of a lease begins with: the request of the update, and what is known of it, which is
// nothing if it has not begun. It fails if another workflow run has the stack for the update.
func (a *Activities) toEnd(
	ctx context.Context, u deployments.UpdateName,
) (request deployments.UpdateRequest, info deployments.UpdateInfo, err error) {
	reading, reads := panics.NewGroup(ctx, "ending a lease")
	reading.Go(func() error { return a.executes(reads, u) })
	reading.Go(func() (err error) {
		request, err = a.Store.Updates.Request(reads, u)
		return err
	})
	reading.Go(func() (err error) {
		if info, err = a.Store.Updates.Info(reads, u); deployments.CodeOf(err) == deployments.CodeNotFound {
			err = nil
		}
		return err
	})
	return request, info, reading.Wait()
}

// unsettledError returns the error of an update that has been committed, with what nobody can settle.
func (a *Activities) unsettledError(ctx context.Context, in deployments.LeaseEnd) (string, error) {
	if in.Status == engine.StatusSucceeded {
		return in.Error, nil
	}
	left, err := a.Store.LeftPending(ctx, in.Update)
	why := unsettled(left)
	if err != nil || left.Operations == 0 || why == "" {
		return in.Error, err
	}
	text := fmt.Sprintf("it left %d operations pending, which the service cannot settle, because %s: look for the "+
		"resources yourself, and run `pulumi refresh`", left.Operations, why)
	if in.Error != "" {
		text = in.Error + "; " + text
	}
	return text, nil
}

// unsettled returns why the service does not settle by itself what an update left; empty: it does.
func unsettled(left statestore.LeftPending) string {
	switch {
	case !left.Readable:
		return fmt.Sprintf("it has no key of the stack's secrets provider (%s)", left.Secrets)
	case left.Bytes > largestSettled:
		return fmt.Sprintf("the state has %d MiB, and it reads up to %d by itself", left.Bytes>>20, largestSettled>>20)
	}
	return ""
}
