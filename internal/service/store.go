package service

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/statestore"
)

// store implements the part of the service that needs no Temporal.
type store struct{ *statestore.Store }

// Export returns the deployment of a version, 0 for the latest. Its secrets are sealed for p, or in plaintext with
// showSecrets.
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
	return version, s.record(ctx, r.Stack, version, deployments.UpdateInfo{Kind: engine.KindImport,
		Initiator: r.Initiator})
}

// Restore makes an earlier deployment of a stack its next one.
func (s *Service) Restore(ctx context.Context, r deployments.RestoreRequest) (int, error) {
	next, err := s.Store.Restore(ctx, statestore.Exchange{Stack: r.Stack, Secrets: r.Secrets, Reserve: s.reserve,
		Forget: r.Forget}, r.Version)
	if err != nil {
		return next, err
	}
	return next, s.record(ctx, r.Stack, next, deployments.UpdateInfo{
		Kind: deployments.KindRestore, Initiator: r.Initiator, Message: fmt.Sprintf("version %d again", r.Version),
	})
}

// recordRename adds the version that a rename made to the stack's history. A stack without a state has no such version,
// and a repeated rename has recorded it already.
func (s store) recordRename(ctx context.Context, r deployments.RenameRequest) error {
	head, err := s.Head(context.WithoutCancel(ctx), r.To)
	if err != nil || head.Version == 0 {
		return err
	}
	last := deployments.UpdateName{StackName: r.To, Version: strconv.Itoa(head.Version)}
	if _, err := s.Info(ctx, last); deployments.CodeOf(err) != deployments.CodeNotFound {
		return err
	}
	return s.record(ctx, r.To, head.Version, deployments.UpdateInfo{
		Kind: deployments.KindRename, Initiator: r.Initiator, Message: "renamed from " + r.From.String(),
	})
}

// record adds a version that no update made to the stack's history, and closes its event log.
func (s store) record(ctx context.Context, name deployments.StackName, version int, info deployments.UpdateInfo) error {
	ctx = context.WithoutCancel(ctx) // the version exists already
	head, err := s.Head(ctx, name)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	info.Update = deployments.UpdateName{StackName: name, Version: strconv.Itoa(version)}
	info.Status, info.Started, info.Ended, info.Resources = string(engine.StatusSucceeded), now, now, head.Resources
	end, err := eventlog.Encode([]deployments.WatchEvent{{End: &info}})
	if err != nil {
		return err
	}
	if err := s.AppendEvents(ctx, statestore.Part{Update: info.Update, Stream: eventlog.RunStream, Number: 1},
		end); err != nil {
		return err
	}
	return s.PutInfo(ctx, info)
}
