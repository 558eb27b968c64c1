package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/internal/values/pack"
	"github.com/deployctl/deployctl/statestore/stateedit"
)

// Move moves resources from the newest state of one stack to that of another, each as a next version. Nothing is
// written until both stacks are claimed for it. The destination is written first: if this process dies in between, both
// stacks have the resources, and the same request again removes them from the first one. It fails as Edit does, for
// each of the stacks.
func (s *Store) Move(ctx context.Context, from, to Exchange, r deployments.MoveRequest) (deployments.Moved, error) {
	var moved deployments.Moved
	source, err := s.newest(ctx, &from)
	if err != nil {
		return moved, err
	}
	target, err := s.newest(ctx, &to)
	if err != nil {
		return moved, err
	}
	plan, err := stateedit.Move(stateedit.Stacks{
		From: slices.Clone(source.states), To: target.states,
		Same: func(a, b engine.State) (bool, error) { return sameInputs(source, a, target, b) },
	}, r)
	if err != nil {
		return moved, err
	}
	for _, operation := range source.pending {
		if _, moves := plan.Names[operation.State.URN]; moves {
			return moved, deployments.Errorf(deployments.CodeInvalid,
				"%s has a pending operation, which cannot be moved: "+
					"run `deployctl refresh` first", operation.State.URN)
		}
	}
	moved.FromVersion, moved.ToVersion, moved.Changes = source.Version, target.Version, plan.Changes
	if err := snapshot.Verify(plan.Left); err != nil {
		return moved, deployments.Errorf(deployments.CodeInvalid, "the state of %s would not be valid: %w", from.Stack,
			err)
	}
	joined, err := s.join(ctx, joint{from: from, to: to, source: source, target: target, plan: plan})
	if err != nil || r.DryRun {
		return moved, err
	}
	leave, err := s.prepareStates(ctx, from, source, plan.Left)
	if err != nil {
		return moved, err
	}
	if len(plan.Added) > 0 {
		enter, err := s.prepareStates(ctx, to, joined, joined.states)
		if err == nil {
			moved.ToVersion, err = enter.commit(ctx)
		}
		if err != nil {
			return moved, errors.Join(err, leave.release(ctx))
		}
	}
	if moved.FromVersion, err = leave.commit(ctx); err != nil {
		err = deployments.Errorf(deployments.CodeOf(err), "version %d of %s has the resources, and %s still has "+
			"them, too; do the same again to remove them there: %w", moved.ToVersion, to.Stack, from.Stack, err)
	}
	return moved, err
}

// newest reads a stack's newest state for a change of it, which x is then bound to.
func (s *Store) newest(ctx context.Context, x *Exchange) (*Checkpoint, error) {
	h, err := s.Head(ctx, x.Stack)
	if err != nil {
		return nil, err
	}
	if err := x.stands(h.Version); err != nil {
		return nil, err
	}
	if h.Active != nil && !x.DryRun {
		return nil, busy(x.Stack, h.Active)
	}
	x.Base = &h.Version
	return s.Checkpoint(ctx, x.Stack, h.Version, x.Secrets)
}

// replaceWith makes states, whose values a base has, the stack's next version.
func (s *Store) replaceWith(ctx context.Context, x Exchange, base *Checkpoint, states []engine.State) (int, error) {
	r, err := s.prepareStates(ctx, x, base, states)
	if err != nil {
		return 0, err
	}
	return r.commit(ctx)
}

// prepareStates prepares that states, whose values a base has, become the stack's next version.
func (s *Store) prepareStates(
	ctx context.Context, x Exchange, base *Checkpoint, states []engine.State,
) (*replacement, error) {
	r, err := s.stackKeysOf(ctx, x.Stack)
	if err != nil {
		return nil, err
	}
	d := r.copyOf(base)
	d.states, d.integrity, d.names = states, "", renames(base.states, states)
	if d.secrets, err = r.provider(x.Secrets); err != nil {
		return nil, err
	}
	return s.prepare(ctx, x, d)
}

// joint is what join makes one state of.
type joint struct {
	from, to       Exchange
	source, target *Checkpoint
	plan           stateedit.Movement
}

// join returns the target's state with what is added to it. Secrets of the source are in plaintext in it, as in an
// import, and encrypted when it is written.
func (s *Store) join(ctx context.Context, j joint) (*Checkpoint, error) {
	fromKeys, err := s.stackKeysOf(ctx, j.from.Stack)
	if err != nil {
		return nil, err
	}
	toKeys, err := s.stackKeysOf(ctx, j.to.Stack)
	if err != nil {
		return nil, err
	}
	file := j.target.file
	features := map[string]bool{}
	for _, name := range file.Features {
		features[name] = true
	}
	d := fromKeys.copyOf(j.source)
	d.showSecrets, d.names = true, j.plan.Names
	file.Deployment.Extensions = maps.Clone(file.Deployment.Extensions)
	var list [][]byte
	for _, raw := range file.Deployment.Resources {
		list = append(list, raw)
	}
	for _, state := range j.plan.Added {
		stored, err := d.resource(ctx, state, features)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(stored)
		if err != nil {
			return nil, err
		}
		list = append(list, data)
		file.Deployment.take(stored.ExtensionRef, &j.source.file.Deployment)
	}
	file.Version = deploymentVersion
	if file.Features = slices.Sorted(maps.Keys(features)); len(features) > 0 {
		file.Version = deploymentVersionFeatures
	}
	if len(file.Deployment.Manifest.Plugins) == 0 {
		file.Deployment.Manifest.Plugins = j.source.file.Deployment.Manifest.Plugins
	}
	parts, err := splice(file, list)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Version: j.target.Version, name: "the state of " + j.to.Stack.String(), imported: true}
	if err := c.parse(ctx, pack.Whole(parts), toKeys, j.to.Secrets); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the state of %s would not be valid: %w", j.to.Stack,
			err)
	}
	return c, nil
}

// sameInputs reports whether two states of two checkpoints have equal inputs.
func sameInputs(of *Checkpoint, a engine.State, other *Checkpoint, b engine.State) (bool, error) {
	values := func(c *Checkpoint, bag engine.Bag) (string, error) {
		if bag.Empty() {
			return "", nil
		}
		properties, err := c.Values(bag.Ref)
		if err != nil {
			return "", err
		}
		plain, err := bags.Plain(properties)
		return string(plain), err
	}
	one, err := values(of, a.Inputs)
	if err != nil {
		return false, err
	}
	two, err := values(other, b.Inputs)
	return one == two, err
}
