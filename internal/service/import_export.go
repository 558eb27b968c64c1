package service

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/access"
	"github.com/deployctl/deployctl/statestore/leases"
	"github.com/deployctl/deployctl/statestore/organizations"
	"github.com/deployctl/deployctl/statestore/programs"
	"github.com/deployctl/deployctl/statestore/stacksecrets"
	"github.com/deployctl/deployctl/statestore/stateedit"
	"github.com/deployctl/deployctl/statestore/updates"
)

// These implement the parts of the service that need no Temporal.
type (
	store    struct{ *statestore.Store }
	rights   struct{ *access.Store }
	operated struct{ *organizations.Store }
	uploads  struct{ *programs.Store }
	updated  struct{ *updates.Store }
	leased   struct{ *leases.Store }
	encrypts struct{ *stacksecrets.Store }
)

// Export returns the deployment of a version, 0 for the latest. Its secrets are sealed for p, or in plaintext with
// showSecrets.
func (s store) Export(
	ctx context.Context, name deployments.StackName, version int, p deployments.SecretsProvider, showSecrets bool,
) (apitype.UntypedDeployment, error) {
	return s.Store.Export(ctx, statestore.Exchange{Stack: name, Secrets: p}, version, showSecrets)
}

// Import replaces a stack's deployment.
func (s *Service) Import(ctx context.Context, r deployments.ImportRequest) (int, error) {
	x := statestore.Exchange{Stack: r.Stack, Secrets: r.Secrets, Reserve: s.reserve, Forget: r.Forget,
		Base: r.BaseVersion}
	version, err := s.store.Store.Import(ctx, x, r.Deployment)
	if err != nil {
		return version, err
	}
	return version, s.record(ctx, r.Stack, version, deployments.UpdateInfo{Kind: engine.KindImport,
		Initiator: r.Initiator})
}

// EditState changes single resources of a stack's state.
func (s *Service) EditState(ctx context.Context, r deployments.EditRequest) (deployments.Edited, error) {
	if err := r.Validate(); err != nil {
		return deployments.Edited{}, err
	}
	x := statestore.Exchange{Stack: r.Stack, Secrets: r.Secrets, Reserve: s.reserve, Forget: r.Forget,
		Base: r.BaseVersion, DryRun: r.DryRun}
	if r.Edit == deployments.EditEncrypt {
		x.Encrypt = &r.NewSecrets
	}
	var edited deployments.Edited
	var err error
	edited.Version, err = s.store.Store.Edit(ctx, x, func(states []engine.State) (out []engine.State, err error) {
		out, edited.Changes, err = stateedit.Apply(states, r)
		return out, err
	})
	if err != nil || r.DryRun || len(edited.Changes) == 0 {
		return edited, err
	}
	return edited, s.record(ctx, r.Stack, edited.Version, deployments.UpdateInfo{
		Kind: deployments.KindEdit, Initiator: r.Initiator, Message: summary(edited.Changes),
	})
}

// MoveState moves resources from a stack's state to another's. The destination gets them first: if this process dies in
// between, both have them, and the same request again removes them from the first.
func (s *Service) MoveState(ctx context.Context, r deployments.MoveRequest) (deployments.Moved, error) {
	if err := r.Validate(); err != nil {
		return deployments.Moved{}, err
	}
	from := statestore.Exchange{Stack: r.From, Secrets: r.FromSecrets, Reserve: s.reserve, Forget: r.Forget,
		Base: r.BaseVersion, DryRun: r.DryRun}
	to := statestore.Exchange{Stack: r.To, Secrets: r.ToSecrets, Reserve: s.reserve, DryRun: r.DryRun}
	moved, err := s.store.Store.Move(ctx, from, to, r)
	if err != nil || r.DryRun {
		return moved, err
	}
	if err := s.record(ctx, r.To, moved.ToVersion, deployments.UpdateInfo{Kind: deployments.KindEdit,
		Initiator: r.Initiator, Message: "from " + r.From.String() + ": " + summary(moved.Changes)}); err != nil {
		return moved, err
	}
	return moved, s.record(ctx, r.From, moved.FromVersion, deployments.UpdateInfo{Kind: deployments.KindEdit,
		Initiator: r.Initiator, Message: "to " + r.To.String() + ": " + summary(moved.Changes)})
}

// summary describes changes in one line.
func summary(changes []string) string {
	if len(changes) > 1 {
		return fmt.Sprintf("%s and %d more", changes[0], len(changes)-1)
	}
	return strings.Join(changes, "")
}

// Restore makes an earlier deployment of a stack its next one.
func (s *Service) Restore(ctx context.Context, r deployments.RestoreRequest) (int, error) {
	next, err := s.store.Store.Restore(ctx, statestore.Exchange{Stack: r.Stack, Secrets: r.Secrets, Reserve: s.reserve,
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
	if _, err := s.Updates.Info(ctx, last); deployments.CodeOf(err) != deployments.CodeNotFound {
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
	info.Committed = true
	end, err := eventlog.Encode([]deployments.WatchEvent{{End: &info}})
	if err != nil {
		return err
	}
	if err := s.Updates.AppendEvents(ctx, updates.Part{Update: info.Update, Stream: eventlog.RunStream, Number: 1},
		end); err != nil {
		return err
	}
	return s.Updates.PutInfo(ctx, info)
}
