package statestore

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/token"
)

// confirmForget rejects, as CodeUnconfirmed, a deployment that would drop all of a stack's resources from its state: it
// has none of them, though they still exist. The stack's resources are read without secrets. If its checkpoint is
// damaged, their number is taken from the head, because the new deployment may be meant to repair that.
func (s *Store) confirmForget(ctx context.Context, x Exchange, in *draft) error {
	h, err := s.Head(ctx, x.Stack)
	if err != nil || x.Forget || h.Version == 0 || h.Resources == 0 {
		return err
	}
	kept := map[outside]bool{}
	for i := range in.states {
		if s := storedHeader(in.states[i]); s.managed() {
			kept[s.outside()] = true
		}
	}
	lost, example := h.Resources, ""
	had, err := s.resources(ctx, x.Stack, h.Version)
	if err != nil && len(kept) > 0 {
		return nil //nolint:nilerr // it is unknown which resources there are
	}
	if err == nil {
		lost = 0
	}
	for i := range had {
		r := &had[i]
		if !r.managed() {
			continue
		}
		if kept[r.outside()] {
			return nil
		}
		lost++
		example = " (such as " + printable(string(r.URN)) + ")"
	}
	if lost == 0 {
		return nil
	}
	none := "has no resources"
	if len(kept) > 0 {
		none = "has none of the stack's resources"
	}
	return deployments.Errorf(deployments.CodeUnconfirmed,
		"the deployment %s: %s of %s%s would be forgotten, and go on existing without being managed", none,
		deployments.Plural(lost, "resource"), x.Stack, example)
}

// resources reads the resources of a stack version.
func (s *Store) resources(ctx context.Context, name deployments.StackName, version int) ([]storedResource, error) {
	data, err := s.checkpointJSON(ctx, name, version)
	if err != nil {
		return nil, err
	}
	_, list, err := parseDeployment(ctx, data)
	return list, err
}

// outside identifies the real resource, whatever its URN.
type outside struct{ kind, id string }

func (r *storedResource) outside() outside { return outside{string(r.Type), r.ID} }

// managed reports whether the state owns a real resource.
func (r *storedResource) managed() bool { return r.Custom && !r.External && !token.IsProvider(r.Type) }
