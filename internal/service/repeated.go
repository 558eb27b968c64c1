package service

import (
	"context"
	"iter"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// recentUpdates is how many updates are searched first for the one that a schedule repeats.
const recentUpdates = 20

// template returns the request that a schedule repeats: the program, configuration and environment of the stack's last
// suitable up. What needs no program works on a stack that only the stock CLI has updated, too: its providers are in
// the state.
func (s *Service) template(
	ctx context.Context, sched deployments.Schedule, driftCheck bool,
) (deployments.UpdateRequest, error) {
	name := sched.Name.StackName
	if sched.NeedsProgram(driftCheck) {
		return s.templateWith(ctx, name, !driftCheck && sched.Kind.Operation() != engine.KindDestroy)
	}
	for u, err := range s.ups(ctx, name) {
		if err != nil {
			return deployments.UpdateRequest{}, err
		}
		r, err := s.Updates.Request(ctx, u.Update)
		switch {
		case err != nil && !notFound(err):
			return r, err
		case err == nil && r.Lease == nil:
			return templateOf(u.Update, r)
		}
	}
	return deployments.UpdateRequest{Stack: name, Secrets: deployments.SecretsProvider{
		Type: deployments.SecretsService}}, nil
}

// templateWith returns the request of the last up, which must have been executed by the service: it has no other
// program, and an older one would undo what was done since.
func (s *Service) templateWith(
	ctx context.Context, name deployments.StackName, successful bool,
) (deployments.UpdateRequest, error) {
	for u, err := range s.ups(ctx, name) {
		if err != nil {
			return deployments.UpdateRequest{}, err
		}
		if successful && u.Status != deployments.StatusSucceeded {
			continue
		}
		r, err := s.Updates.Request(ctx, u.Update)
		if err != nil {
			return r, err
		}
		if r.Lease != nil {
			return r, deployments.Errorf(deployments.CodeInvalid,
				"%s was executed by the stock CLI, and the service does not have its program, which the schedule would "+
					"repeat: run `deployctl up` first. Drift checks without remediation, refreshes and destroys need no program",
				u.Update)
		}
		return templateOf(u.Update, r)
	}
	return deployments.UpdateRequest{}, deployments.Errorf(deployments.CodeInvalid,
		"%s has no update that a schedule could repeat, with its program, configuration and environment: run "+
			"`deployctl up` first", name)
}

// ups returns the ups of a stack that have ended, the newest first: those of its recent updates and, until one of all
// that has succeeded, older ones.
func (s *Service) ups(ctx context.Context, name deployments.StackName) iter.Seq2[deployments.UpdateInfo, error] {
	return func(yield func(deployments.UpdateInfo, error) bool) {
		seen, succeeded := 0, false
		for u, err := range s.Updates.UpdatesOf(ctx, name) {
			if err != nil {
				yield(u, err)
				return
			}
			if seen++; seen > recentUpdates && succeeded {
				return
			}
			if u.Kind != engine.KindUp || u.Ended.IsZero() {
				continue
			}
			if succeeded = succeeded || u.Status == deployments.StatusSucceeded; !yield(u, nil) {
				return
			}
		}
	}
}

// templateOf returns the parts of an update's request that are about the program, not about that one update.
func templateOf(u deployments.UpdateName, r deployments.UpdateRequest) (deployments.UpdateRequest, error) {
	if r.Secrets.NeedsClient() {
		return r, deployments.Errorf(deployments.CodeInvalid,
			"the secrets of %s are under a passphrase or a key that the service cannot use: what runs by schedule needs "+
				"a stack with the service's own secrets provider (deployctl stack change-secrets-provider default)",
			u.StackName)
	}
	return deployments.UpdateRequest{
		Stack: u.StackName, Bundle: r.Bundle, Config: r.Config, Environment: r.Environment, Secrets: r.Secrets,
		Parallel: r.Parallel, Refresh: r.Refresh, Authority: r.Authority,
	}, nil
}

// RemoveScheduled removes the stack of a schedule that has destroyed it. The run must be the one that was admitted
// last; a removal that is repeated has no effect.
func (s *Service) RemoveScheduled(
	ctx context.Context, in deployments.ScheduledInput, run workflow.Execution,
) error {
	name := in.Schedule.Name.StackName
	head, err := s.Head(ctx, name)
	if notFound(err) || err == nil && head.ID != in.StackID {
		return nil // it was removed
	}
	if err != nil {
		return err
	}
	w, err := s.store.Jobs.Schedule(ctx, in.Schedule.Name)
	if err != nil && !notFound(err) {
		return err
	}
	if err != nil || w.ID != in.ID || w.Run != run.RunID || !w.Schedule.RemoveStack {
		return noSchedule(in.Schedule.Name)
	}
	if err := s.permit(ctx, in.Schedule, run); err != nil {
		return err
	}
	return s.RemoveStack(ctx, name, false)
}

// notFound reports whether an error says that something does not exist.
func notFound(err error) bool {
	return err != nil && deployments.CodeOf(err) == deployments.CodeNotFound
}
