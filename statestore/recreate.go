package statestore

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// A stack may get the identity of one that is gone (docs/adr/0071). Two living stacks never have one identity: each
// would take the other's resources for its own. So who gives an identity away
//
//	notes in the tombstone of its name that it has left, as a rename does: the next stack of the name gets another one;
//	writes the head of the new stack, locked as by a removal, so that nothing can be made with the identity yet;
//	looks at the heads of all stacks, and removes the new stack if another one has the identity, or else unlocks it.
//
// A crash in between leaves a locked stack, whose name `deployctl stack rm` gives free.
//
// Of two that do so at once, at least one sees the other's head. Who creates a stack of the identity's name meanwhile
// has read the tombstone before the note, and reads it again after its head is there: see keepApart.

// RecreateStack creates an empty stack with the identity of one that is gone. Anywhere allows identities that may have
// left their organization; without it, of such the error is CodeForbidden. CodeConflict when a stack has the identity;
// otherwise it fails as CreateStack does.
func (s *Store) RecreateStack(
	ctx context.Context, name deployments.StackName, identity string, anywhere bool,
) error {
	first, err := deployments.ParseIdentity(identity)
	if err != nil {
		return err
	}
	if _, err = s.Head(ctx, name); err == nil {
		return exists(name)
	} else if deployments.CodeOf(err) != deployments.CodeNotFound {
		return err
	}
	r, _, err := s.readTombstone(ctx, name)
	if err != nil {
		return err
	}
	if r.firstIdentity(name) == identity {
		return s.CreateStack(ctx, name, nil)
	}
	select { // who may do this may not have the service read all heads many times at once
	case s.recreating <- struct{}{}:
		defer func() { <-s.recreating }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.unheld(ctx, identity, ""); err != nil {
		return err
	}
	if stayed, err := s.stayed(ctx, first, identity); err != nil {
		return err
	} else if !stayed && !anywhere {
		return deployments.Errorf(deployments.CodeForbidden, "a rename may have taken %s to another organization; only an "+
			"admin of all organizations can give it away", identity)
	}
	if err := s.Organizations.PlaceStack(ctx, name, 0); err != nil {
		return err
	}
	if err := s.raiseTombstone(ctx, first, 0, identity, name.String()); err != nil {
		return err
	}
	h := Head{Format: Format, ID: rand.Text(), Identity: identity, Next: max(r.Next, 1),
		Active: &Active{Version: removal, Writer: rand.Text(), Since: s.now().UTC()}}
	if err := s.writeHead(ctx, name, h, bucket.Condition{Absent: true}); errors.Is(err, bucket.ErrChanged) {
		return exists(name)
	} else if err != nil {
		return err
	}
	if err := s.unheld(ctx, identity, h.ID); err != nil {
		return errors.Join(err, s.undoCreation(context.WithoutCancel(ctx), name, h.ID))
	}
	if err := s.stillLocked(ctx, name, h); err != nil {
		return err
	}
	return s.unlockStack(ctx, name, h)
}

// keepApart gives a stack that was just created the next identity of its name if its own was given away meanwhile.
func (s *Store) keepApart(ctx context.Context, name deployments.StackName, created Head) error {
	for {
		r, _, err := s.readTombstone(ctx, name)
		if err != nil || !slices.Contains(r.Moved, created.Identity) {
			return err
		}
		created, err = s.changeReadHead(ctx, name, func(h *Head) (bool, error) {
			if h.ID != created.ID || h.Identity != created.Identity {
				return false, deployments.Errorf(deployments.CodeConflict, "%s was just removed or renamed", name)
			}
			h.Identity = r.firstIdentity(name)
			return true, nil
		})
		if err != nil {
			return err
		}
	}
}

// mostListings bounds how often unheld begins again because stacks come and go.
const mostListings = 10

// unheld returns nil if no stack has an identity but, if it is not empty, the one with an id; CodeConflict if one has.
// A stack that is being renamed may be seen under neither name: so what is listed must be the same before and after.
func (s *Store) unheld(ctx context.Context, identity, id string) error {
	before, err := stackobjects.Folders(ctx, s.objects, "", "")
	for range mostListings {
		if err != nil {
			return err
		}
		err = bucket.Each(before, func(folder string) error {
			name, err := stackobjects.NameOf(folder)
			if err != nil {
				return nil //nolint:nilerr // no stack can have this name
			}
			h, err := s.Head(ctx, name)
			switch {
			case deployments.CodeOf(err) == deployments.CodeNotFound:
				return nil
			case bucket.Unreadable(err) != nil: // it may be of another organization, so it is not named
				return deployments.Errorf(deployments.CodeFormat, "a stack of the service is damaged, so it is not known "+
					"whether it has the identity %s; deployctl stack ls --all names damaged stacks", identity)
			case err != nil:
				return err
			case h.Identity == identity && h.ID != id:
				return deployments.Errorf(deployments.CodeConflict, "a stack has the identity %s: two stacks with one "+
					"identity would take each other's resources for their own", identity)
			}
			return nil
		})
		if err != nil {
			return err
		}
		after, err := stackobjects.Folders(ctx, s.objects, "", "")
		if err != nil || slices.Equal(before, after) {
			return err
		}
		before = after
	}
	return deployments.Errorf(deployments.CodeConflict, "stacks come and go, so it is not known whether one has the "+
		"identity %s: try again", identity)
}

// stayed reports whether the stacks that had an identity are known to have stayed in the organization of its name. Of
// the names under which one has gone on, each has the last: so the way that they lead ends where the identity was last,
// or goes on to where it was before that.
func (s *Store) stayed(ctx context.Context, first deployments.StackName, identity string) (bool, error) {
	seen := map[deployments.StackName]bool{}
	for at := first; !seen[at]; {
		seen[at] = true
		r, _, err := s.readTombstone(ctx, at)
		if err != nil {
			return false, err
		}
		to, known := r.To[identity]
		if !known {
			return !slices.Contains(r.Moved, identity), nil
		}
		if at, err = deployments.ParseStackName(to, deployments.StackName{}); err != nil ||
			at.Organization != first.Organization {
			return false, nil //nolint:nilerr // such a name is not of the organization
		}
	}
	return true, nil
}
