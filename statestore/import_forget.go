package statestore

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/token"
)

// confirmForget refuses, as CodeUnconfirmed, to put a deployment in the place of a stack's own that forgets all of its
// resources: that has none of them, though they go on existing. What the stack has is read without its secrets, and
// taken from its head when its checkpoint is damaged: the deployment may be there to repair that.
func (s *Store) confirmForget(ctx context.Context, x Exchange, in *Checkpoint) error {
	h, err := s.Head(ctx, x.Stack)
	if err != nil || x.Forget || h.Version == 0 || h.Resources == 0 {
		return err
	}
	kept := map[outside]bool{}
	for i := range in.resources {
		if r := &in.resources[i]; r.managed() {
			kept[r.outside()] = true
		}
	}
	lost, example := h.Resources, ""
	had, err := s.resources(ctx, x.Stack, h.Version)
	if err != nil && len(kept) > 0 {
		return nil //nolint:nilerr // which they are is not known
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
		plural(lost, "resource"), x.Stack, example)
}

// resources reads what a version of a stack has.
func (s *Store) resources(ctx context.Context, name deployments.StackName, version int) ([]storedResource, error) {
	data, err := s.checkpointJSON(ctx, name, version)
	if err != nil {
		return nil, err
	}
	_, list, err := parseDeployment(data)
	return list, err
}

// outside is what a resource stands for, whatever it is called in the state.
type outside struct{ kind, id string }

func (r *storedResource) outside() outside { return outside{string(r.Type), r.ID} }

// managed reports whether a resource stands for something that exists outside, and is the stack's own.
func (r *storedResource) managed() bool { return r.Custom && !r.External && !token.IsProvider(r.Type) }
