package statestore

import (
	"context"
	"reflect"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

// Edit makes the stack's next version of the newest one: change returns the headers of its resources, changed, and must
// not change what the given ones refer to. Values and secrets stay as they are stored. It returns the new version; the
// newest one if nothing changes, or with x.DryRun. CodeInvalid: the edited state breaks an invariant. CodeUnconfirmed:
// see confirmForget. CodeConflict: the stack has an update running, or is not at x.Base.
func (s *Store) Edit(
	ctx context.Context, x Exchange, change func([]engine.State) ([]engine.State, error),
) (int, error) {
	base, err := s.newest(ctx, &x)
	if err != nil {
		return 0, err
	}
	states, err := change(slices.Clone(base.States()))
	if err != nil {
		return 0, err
	}
	if err := snapshot.Verify(states); err != nil {
		return 0, deployments.Errorf(deployments.CodeInvalid, "the state would not be valid: %w", err)
	}
	if x.DryRun || x.Encrypt == nil && reflect.DeepEqual(states, base.states) {
		return base.Version, nil
	}
	if x.Encrypt != nil {
		x.Secrets = *x.Encrypt
	}
	return s.replaceWith(ctx, x, base, states)
}

// stands reports, as CodeConflict, that the stack is at another version than the client has seen.
func (x Exchange) stands(version int) error {
	if x.Base == nil || *x.Base == version {
		return nil
	}
	return deployments.Errorf(deployments.CodeConflict, "the stack %s is at version %d, and what you change is "+
		"version %d: look at the new state, and do it again", x.Stack, version, *x.Base)
}
