package activities

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/stackconfig"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/statestore"
)

// maxHeaders bounds one part of the headers if the caller sets no limit.
const maxHeaders = 500

// ReadHeaders returns a part of the headers of the checkpoint from which an update starts. It fails if the checkpoint
// is known to be broken: no update starts from such a state.
func (a *Activities) ReadHeaders(ctx context.Context, in deployments.HeadersInput) (deployments.Headers, error) {
	request, err := a.requestOf(ctx, in.Update)
	if err != nil {
		return deployments.Headers{}, failure.Of(err)
	}
	checkpoint, err := a.Store.Checkpoint(ctx, in.Update.StackName, in.Base, request.Secrets)
	if err != nil {
		return deployments.Headers{}, failure.Of(repairable(err))
	}
	if err := checkpoint.CheckIntegrity(); err != nil {
		return deployments.Headers{}, failure.Of(err)
	}
	limit := in.Limit
	if limit < 1 {
		limit = maxHeaders
	}
	headers := checkpoint.Headers(in.From, limit)
	if in.From == 0 {
		headers.Defaults, err = a.defaults(ctx, in, checkpoint.PackagesWithoutProvider())
	}
	return headers, failure.Of(err)
}

// repairable adds to the error about a damaged state that nothing was done; the error itself says how to repair the
// state.
func repairable(err error) error {
	if deployments.CodeOf(err) != deployments.CodeFormat {
		return err
	}
	return deployments.Errorf(deployments.CodeFormat, "the stack's state cannot be read, and nothing was done: %w", err)
}

// defaults returns the default providers of packages, as the stack's configuration defines them.
func (a *Activities) defaults(
	ctx context.Context, in deployments.HeadersInput, packages []statestore.Plugin,
) ([]engine.DefaultProvider, error) {
	if len(packages) == 0 {
		return nil, nil
	}
	values, request, err := a.valuesOf(ctx, in.Update, in.Base)
	if err != nil {
		return nil, err
	}
	out := make([]engine.DefaultProvider, 0, len(packages))
	for _, p := range packages {
		inputs := stackconfig.Config(request.Config).ForPackage(p.Package)
		pluginhost.Package{Name: p.Package, Version: p.Version}.PutInto(inputs, nil)
		bag, err := values.Encode(ctx, inputs)
		if err != nil {
			return nil, err
		}
		out = append(out, engine.DefaultProvider{Package: p.Package, Inputs: bag})
	}
	return out, nil
}

// requestOf returns the request of an update, from its session if this worker has one.
func (a *Activities) requestOf(ctx context.Context, u deployments.UpdateName) (deployments.UpdateRequest, error) {
	if s := a.sessions.Find(u); s != nil {
		return s.Request(), nil
	}
	return a.Store.Updates.Request(ctx, u)
}

// valuesOf returns the codec of an update's bags and its request, whichever worker hosts the update.
func (a *Activities) valuesOf(
	ctx context.Context, u deployments.UpdateName, base int,
) (*bags.Codec, deployments.UpdateRequest, error) {
	if s := a.sessions.Find(u); s != nil {
		s, err := s.Await(ctx)
		if err == nil {
			return s.Update().Values, s.Request(), nil
		}
	}
	request, err := a.Store.Updates.Request(ctx, u)
	if err != nil {
		return nil, request, err
	}
	values, err := a.Store.Bags(ctx, statestore.Scope{Update: u, Base: base, Secrets: request.Secrets})
	return values, request, err
}
