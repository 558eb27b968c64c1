package service

import (
	"context"
	"errors"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/leases"
)

// queueKnownFor is how long a task queue that was read for a start is good for it.
const queueKnownFor = time.Second

// toStart reads at once what a start needs of the bucket: what was created, and the task queue of the workers. That is
// read again if it was read too long ago.
func (s *Service) toStart(
	ctx context.Context, name deployments.StackName, id string,
) (created deployments.CreatedUpdate, queue func() (string, error), err error) {
	var workers string
	var unknown error
	read := time.Now()
	reading, reads := panics.NewGroup(ctx, "starting an update")
	reading.Go(func() (err error) {
		created, err = s.Leases.Created(reads, name, id)
		return err
	})
	reading.Go(func() error {
		workers, unknown = s.Organizations.TaskQueue(reads, name.Organization) // a preview does not need it
		return nil
	})
	err = reading.Wait()
	return created, func() (string, error) {
		if unknown == nil && time.Since(read) < queueKnownFor {
			return workers, nil
		}
		return s.Organizations.TaskQueue(ctx, name.Organization)
	}, err
}

// noteStart notes which version an update has got, while its start waits for the stack.
func (s *Service) noteStart(ctx context.Context, created deployments.CreatedUpdate) <-chan error {
	noted := make(chan error, 1)
	go func() {
		noted <- panics.Do("starting an update", func() error { return s.Leases.PutCreated(ctx, created) })
	}()
	return noted
}

// startPreview describes a preview that its client executes, unless it was started before.
func (s *Service) startPreview(ctx context.Context, l deployments.Leased, r deployments.UpdateRequest) error {
	if _, err := s.Updates.Info(ctx, l.Update); deployments.CodeOf(err) != deployments.CodeNotFound || err == nil {
		return errors.Join(err, s.leaseHasEnded(ctx, l))
	}
	return s.Updates.PutInfo(ctx, deployments.UpdateInfo{Update: l.Update, Kind: r.Kind, DryRun: true,
		Status: deployments.StatusRunning, Message: r.Message, Initiator: r.Initiator, Started: time.Now().UTC()})
}

// awaitLease waits until an update has its stack, and returns the head with its claim. If another update was put before
// it, it has got another version, which is returned without a head. It leaves its turn when another update has the
// stack, for which it waits up to a time.
func (s *Service) awaitLease(
	ctx context.Context, u deployments.UpdateName, until time.Time, leave func(),
) (_ deployments.UpdateName, has statestore.Head, err error) {
	s.starting.Add(1)
	defer s.starting.Add(-1)
	looked := time.Now()
	for pause := leasePollFirst; ; pause = min(pause*5/4+time.Millisecond, s.longestPause()) {
		h, err := s.Head(ctx, u.StackName)
		if err != nil {
			return u, has, err
		}
		if h.Active != nil && h.Active.Version == u.Version && h.Active.Writer == leases.Writer {
			return u, h, nil
		}
		if h.Active != nil && h.Active.Version != u.Version {
			leave()
		}
		if time.Since(looked) >= leaseInfoEvery {
			looked = time.Now()
			if next, err := s.leftQueue(ctx, u); err != nil || next != u {
				return next, has, err
			}
		}
		if h.Active != nil && h.Active.Version != u.Version && time.Now().After(until) {
			return u, has, s.stillBusy(ctx, u.StackName)
		}
		if !sleep(ctx, pause) {
			return u, has, failure("wait for the stack", ctx.Err())
		}
	}
}

// longestPause returns how long an update that waits for its stack pauses at most between reads of the head.
func (s *Service) longestPause() time.Duration {
	return min(leasePollLast*time.Duration(1+s.starting.Load()/leasePollFew), leasePollMost)
}

// leftQueue returns the update that took the place of one that waits for its stack: itself as long as it waits, or the
// version that it got when another was put before it. It is an error that it has ended.
func (s *Service) leftQueue(ctx context.Context, u deployments.UpdateName) (deployments.UpdateName, error) {
	info, err := s.Updates.Info(ctx, u)
	switch {
	case deployments.CodeOf(err) == deployments.CodeNotFound && err != nil:
		return u, nil
	case err != nil:
		return u, err
	case info.Next != "":
		return deployments.UpdateName{StackName: u.StackName, Version: info.Next}, nil
	case !info.Ended.IsZero():
		return u, deployments.Errorf(deployments.CodeConflict, "update %s has ended before it began: %s", u, info.Error)
	}
	return u, nil
}

// concurrent is the sentence by which Pulumi's Automation API recognizes that another update has the stack.
const concurrent = "Conflict: Another update is currently in progress."

// stillBusy returns the error about a stack that an update does not wait for any longer.
func (s *Service) stillBusy(ctx context.Context, name deployments.StackName) error {
	info, err := s.Stack(ctx, name)
	if err != nil {
		return err
	}
	why := "run the command again"
	if info.Active != nil {
		why = info.Active.Holds()
	}
	return deployments.Errorf(deployments.CodeConflict, "%s The stack %s stays busy: %s", concurrent, name, why)
}
