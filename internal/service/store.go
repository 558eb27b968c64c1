package service

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
)

// store is the part of the service that needs no Temporal.
type store struct{ *statestore.Store }

// Export gives a stored deployment.
func (s store) Export(
	ctx context.Context, name deployments.StackName, version int, p deployments.SecretsProvider, showSecrets bool,
) (apitype.UntypedDeployment, error) {
	return s.Store.Export(ctx, statestore.Exchange{Stack: name, Secrets: p}, version, showSecrets)
}

// Import replaces a stack's deployment.
func (s *Service) Import(ctx context.Context, r deployments.ImportRequest) (int, error) {
	x := statestore.Exchange{Stack: r.Stack, Secrets: r.Secrets, Reserve: s.reserve, Forget: r.Forget}
	version, err := s.Store.Import(ctx, x, r.Deployment)
	if err != nil {
		return version, err
	}
	return version, s.record(ctx, r.Stack, version, engine.KindImport, "")
}

// Restore makes an earlier deployment of a stack its next one.
func (s *Service) Restore(ctx context.Context, name deployments.StackName, version int, p deployments.SecretsProvider) (int, error) {
	next, err := s.Store.Restore(ctx, statestore.Exchange{Stack: name, Secrets: p, Reserve: s.reserve}, version)
	if err != nil {
		return next, err
	}
	return next, s.record(ctx, name, next, deployments.KindRestore, fmt.Sprintf("version %d again", version))
}

// record makes a version that no update made part of the stack's history, and gives it a log that has an end.
func (s store) record(ctx context.Context, name deployments.StackName, version int, kind engine.Kind, message string) error {
	ctx = context.WithoutCancel(ctx) // it has happened
	head, err := s.Head(ctx, name)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	info := deployments.UpdateInfo{
		Update: deployments.UpdateName{StackName: name, Version: strconv.Itoa(version)}, Kind: kind, Message: message,
		Status: string(engine.StatusSucceeded), Started: now, Ended: now, Resources: head.Resources,
	}
	end, err := activities.EncodeEvents([]deployments.WatchEvent{{End: &info}})
	if err != nil {
		return err
	}
	if err := s.AppendEvents(ctx, statestore.Part{Update: info.Update, Stream: activities.RunStream, Number: 1}, end); err != nil {
		return err
	}
	return s.PutInfo(ctx, info)
}
