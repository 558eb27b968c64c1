package statestore

import (
	"context"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// Restore makes the deployment of an earlier version the stack's next one, and returns that version. Real resources do
// not change: the next update or refresh starts from the restored state. CodeNotFound: there is no such version, it
// never had a checkpoint, or the checkpoint is not kept any more. CodeInvalid: it cannot be the stack's deployment now.
// CodeUnconfirmed: see confirmForget. CodeConflict: the stack has an update running.
func (s *Store) Restore(ctx context.Context, x Exchange, version int) (int, error) {
	h, err := s.Head(ctx, x.Stack)
	if err != nil {
		return 0, err
	}
	if version < 1 || version >= h.Next {
		return 0, deployments.Errorf(deployments.CodeNotFound,
			"the stack %s has no version %d; `deployctl stack history` lists those there are", x.Stack, version)
	}
	if h.Active != nil {
		return 0, busy(x.Stack, h.Active)
	}
	if version == h.Version {
		return 0, deployments.Errorf(deployments.CodeInvalid, "version %d is the stack's newest already", version)
	}
	versions, err := s.states(ctx, x.Stack, h)
	switch {
	case err != nil:
		return 0, err
	case slices.Contains(versions, version):
	case len(versions) > 0 && version < versions[0]:
		return 0, deployments.Errorf(deployments.CodeNotFound,
			"version %d of %s is not kept any more: %d is the oldest that is; `deployctl stack history` shows which "+
				"can be restored",
			version, x.Stack, versions[0])
	default:
		return 0, deployments.Errorf(deployments.CodeNotFound,
			"update %d of %s ended before it had a state of its own; `deployctl stack history` shows which versions "+
				"can be restored",
			version, x.Stack)
	}
	c, err := s.Checkpoint(ctx, x.Stack, version, x.Secrets)
	if err != nil {
		return 0, err
	}
	if err := c.CheckIntegrity(); err != nil {
		return 0, deployments.Errorf(deployments.CodeInvalid, "version %d cannot be restored: %w", version, err)
	}
	if u := otherStackResource(x.Stack, c.states, c.file.Deployment.PendingOperations); u != "" {
		return 0, deployments.Errorf(deployments.CodeInvalid,
			"version %d is of the time when the stack had another name: it has the resource %s; rename what "+
				"`deployctl stack export --version %d` "+
				"gives, and import that", version, u, version)
	}
	r, err := s.stackKeysOf(ctx, x.Stack)
	if err != nil {
		return 0, err
	}
	d := r.copyOf(c)
	if d.secrets, err = r.provider(x.Secrets); err != nil {
		return 0, err
	}
	return s.replace(ctx, x, d)
}

// kept returns the versions that have a checkpoint, without the newest when that is damaged.
func (s *Store) kept(ctx context.Context, name deployments.StackName) ([]int, error) {
	h, err := s.Head(ctx, name)
	if err != nil {
		return nil, err
	}
	versions, err := s.states(ctx, name, h)
	if err != nil || h.Version == 0 {
		return versions, err
	}
	if _, err = s.checkpointJSON(ctx, name, h.Version); bucket.Unreadable(err) == nil {
		return versions, err
	}
	return slices.DeleteFunc(versions, func(v int) bool { return v == h.Version }), nil
}

// states returns the versions that have a state, in order: those whose checkpoint is there, and which the stack has had
// by its head. Before the bucket's heads are authenticated, all that are there count.
func (s *Store) states(ctx context.Context, name deployments.StackName, h Head) ([]int, error) {
	versions, _, err := s.versions(ctx, name)
	if s.Keys.Authenticated() {
		versions = slices.DeleteFunc(versions, func(v int) bool { return !h.hadState(v) })
	}
	return versions, err
}

// savesAll reports whether each save of an update is stored.
func (s *Store) savesAll(ctx context.Context, u deployments.UpdateName) (bool, error) {
	h, err := s.Head(ctx, u.StackName)
	return h.Active == nil || h.Active.Version != u.Version || h.Active.EverySave, err
}
