package statestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// RenameStack changes the name, project or organization of a stack with its history, and rewrites the URNs of its
// resources in a new version. CodeExists when there is a stack of that name; CodeQuota when the organization of that
// name may not have another one; CodeConflict when it has an update running, or a rename to another name has not ended;
// CodeInvalid when it has that name already. An interrupted rename is finished by repeating it; until then the stack
// has both names and cannot be updated.
func (s *Store) RenameStack(ctx context.Context, from, to deployments.StackName) error {
	if err := to.Validate(); err != nil {
		return err
	}
	if from == to {
		return deployments.Errorf(deployments.CodeInvalid, "the stack has the name %s already: say what it is to be "+
			"called instead", to)
	}
	h, err := s.Head(ctx, from)
	if err != nil {
		return err
	}
	target, tag, err := s.readHead(ctx, to)
	switch {
	case err != nil && deployments.CodeOf(err) != deployments.CodeNotFound:
		return err
	case err == nil && target.ID != h.ID:
		return exists(to)
	case err == nil && !target.placeholder(): // an earlier attempt did all but the end
		return s.deleteStack(ctx, from, h, "")
	}
	if err := s.mayRename(ctx, from, to, h, tag == ""); err != nil { // before anything is locked
		return err
	}
	if h, err = s.lockStack(ctx, from, to, func(h *Head) error {
		return s.onlyRenaming(ctx, *h, from, to)
	}); err != nil {
		return err
	}
	locked := h
	if tag == "" {
		if err = s.reserveName(ctx, h, from, to); err != nil {
			return errors.Join(err, s.unlockStack(context.WithoutCancel(ctx), from, locked))
		}
	}
	if err := s.onlyReserved(ctx, from, to, locked); err != nil {
		return err
	}
	if target, tag, err = s.reserved(ctx, to, locked); err != nil {
		return err
	}
	h.Next = max(h.Next, target.Next)
	if err := s.moveObjects(ctx, from, to); err != nil {
		return err
	}
	if h.Version > 0 {
		if h, err = s.rewrite(ctx, h, from, to); err != nil {
			return err
		}
	}
	if err := s.stillLocked(ctx, from, locked); err != nil {
		return err
	}
	h.Active, h.Peer = nil, from.String()
	if err := s.writeHead(ctx, to, h, bucket.Condition{Tag: tag}); err != nil {
		return err
	}
	return s.deleteStack(ctx, from, locked, "")
}

// mayRename reports why a stack does not get a name, which may be free: its state cannot be read, or the organization
// of the name has used up its quota.
func (s *Store) mayRename(ctx context.Context, from, to deployments.StackName, h Head, free bool) error {
	if h.Version > 0 {
		if _, err := s.checkpointJSON(ctx, from, h.Version); err != nil {
			return err
		}
	}
	if from.Organization == to.Organization || !free {
		return nil
	}
	return s.Organizations.PlaceStack(ctx, to, h.Resources)
}

// onlyRenaming rejects a rename of a stack that an interrupted rename has left with two names, unless it repeats that
// rename. The interrupted one may be anywhere between its first write, when everything is under the old name, and its
// last, when everything is under the new one.
func (s *Store) onlyRenaming(ctx context.Context, h Head, from, to deployments.StackName) error {
	if h.Peer == "" {
		return nil
	}
	peer, err := deployments.ParseStackName(h.Peer, deployments.StackName{})
	if err != nil {
		return bucket.Damaged(stackobjects.Key(from, "head.json"), err)
	}
	// from is locked when it is the old name, or a new one that has no state yet: renaming back frees that
	older, newer := peer, from
	if h.Active != nil && h.Active.Version == removal {
		older, newer = from, peer
	}
	other, _, err := s.readHead(ctx, peer)
	switch {
	case deployments.CodeOf(err) == deployments.CodeNotFound, err == nil && other.ID != h.ID, from == older &&
		to == newer:
		return nil
	case err != nil:
		return err
	}
	return deployments.Errorf(deployments.CodeConflict,
		"the renaming of the stack %s to %s has not ended: unless it is still running, do that one again first, then "+
			"rename %s", older, newer, newer)
}

// placeholder reports whether a head only reserves a name, without any state, for a rename or a removal.
func (h *Head) placeholder() bool {
	return h.Version == 0 && h.Active != nil && h.Active.Version == removal
}

// lockStack keeps updates away from a stack that is being removed, or renamed to peer, unless may says why not.
// CodeConflict when it has an update running. A removal or a rename that was going on has lost the stack to this one.
func (s *Store) lockStack(
	ctx context.Context, name, peer deployments.StackName, may func(*Head) error,
) (Head, error) {
	return s.changeHead(ctx, name, func(h *Head) (bool, error) {
		if h.Active != nil && h.Active.Version != removal {
			return false, busy(name, h.Active)
		}
		if err := may(h); err != nil {
			return false, err
		}
		h.Fence++
		h.Active = &Active{Version: removal, Writer: rand.Text(), Since: s.now().UTC()}
		if peer != (deployments.StackName{}) {
			h.Peer = peer.String()
		}
		return true, nil
	})
}

// holdsLock reports whether a head still has a lock: another removal or rename may have taken it over, or another stack
// the name.
func (h *Head) holdsLock(locked Head) bool {
	return h.ID == locked.ID && h.Active != nil && locked.Active != nil && h.Active.Writer == locked.Active.Writer
}

// stillLocked reports, as CodeConflict, that another call may use what has the name of a stack that was locked.
func (s *Store) stillLocked(ctx context.Context, name deployments.StackName, locked Head) error {
	h, _, err := s.readHead(ctx, name)
	if err == nil && !h.holdsLock(locked) {
		err = deployments.Errorf(deployments.CodeConflict, "the stack %s is being removed or renamed by another user, too",
			name)
	}
	return err
}

// unlockStack gives a stack free again, unless another call has locked it meanwhile.
func (s *Store) unlockStack(ctx context.Context, name deployments.StackName, locked Head) error {
	_, err := s.changeHead(ctx, name, func(h *Head) (bool, error) {
		if !h.holdsLock(locked) {
			return false, nil
		}
		h.Active, h.Peer = nil, ""
		return true, nil
	})
	return err
}

// reserveName reserves the new name with a head that cannot be updated.
func (s *Store) reserveName(ctx context.Context, h Head, from, to deployments.StackName) error {
	next, err := s.nextOf(ctx, to)
	if err != nil {
		return err
	}
	placeholder := Head{Format: Format, ID: h.ID, Identity: h.Identity, Next: next, Active: h.Active, Peer: from.String()}
	err = s.writeHead(ctx, to, placeholder, bucket.Condition{Absent: true})
	if !errors.Is(err, bucket.ErrChanged) {
		return err
	}
	there, _, err := s.readHead(ctx, to)
	if err == nil && there.ID == h.ID && there.placeholder() { // the same renaming, by another user
		return nil
	}
	return exists(to)
}

// reserved returns the head that reserves the new name, with its tag. It is read once the stack is locked and before
// anything is moved below the name: a call that lost the stack may have given the name free before.
func (s *Store) reserved(ctx context.Context, to deployments.StackName, locked Head) (Head, string, error) {
	h, tag, err := s.readHead(ctx, to)
	if err == nil && (h.ID != locked.ID || !h.placeholder()) {
		return h, tag, deployments.Errorf(deployments.CodeConflict,
			"the name %s was just given free by another rename: rename the stack again", to)
	}
	return h, tag, err
}

// onlyReserved reports, as CodeConflict, that another call has locked the stack before the new name was reserved, and
// gives the name free again. It writes the head: from then on one that wants to lock the stack finds the name reserved.
func (s *Store) onlyReserved(ctx context.Context, from, to deployments.StackName, locked Head) error {
	var is Head
	_, err := s.changeHead(ctx, from, func(h *Head) (bool, error) {
		is = *h
		return h.holdsLock(locked), nil
	})
	if err != nil || is.holdsLock(locked) {
		return err
	}
	if is.Peer != to.String() {
		if err := s.giveFree(ctx, from, to, locked); err != nil {
			return err
		}
	}
	return s.stillLocked(ctx, from, locked)
}

// giveFree removes the head that reserves a name, unless another rename to that name has begun. A Delete has no
// condition, so the head first becomes that of another stack, which no rename takes, if it is still what was read.
func (s *Store) giveFree(ctx context.Context, from, to deployments.StackName, locked Head) error {
	target, tag, err := s.readHead(ctx, to)
	if err != nil || target.ID != locked.ID || !target.placeholder() {
		return nil //nolint:nilerr // what is there is not this call's
	}
	free := Head{Format: Format, ID: rand.Text(), Next: target.Next, Active: locked.Active}
	if err := s.writeHead(ctx, to, free, bucket.Condition{Tag: tag}); err != nil {
		if errors.Is(err, bucket.ErrChanged) {
			return nil
		}
		return err
	}
	if h, _, err := s.readHead(ctx, from); err == nil && h.ID == locked.ID && h.Peer == to.String() {
		// that rename may be moving objects below the name
		_, err := s.changeHead(ctx, to, func(h *Head) (bool, error) {
			is := h.ID == free.ID
			*h = target
			return is, nil
		})
		return err
	}
	s.cacheIdentity(to, Head{})
	return bucket.Failed(s.objects.Delete(ctx, stackobjects.Key(to, "head.json")), "give the name "+to.String()+" free")
}

// moveObjects copies all objects of a stack except its head. Sealed objects stay readable: their keys and contexts are
// derived from the stack's identity.
func (s *Store) moveObjects(ctx context.Context, from, to deployments.StackName) error {
	l, err := s.objects.List(ctx, bucket.Query{Prefix: stackobjects.Key(from, "")})
	if err != nil {
		return bucket.Failed(err, "list the stack "+from.String())
	}
	return bucket.Each(l.Keys, func(key string) error {
		if key == stackobjects.Key(from, "head.json") ||
			strings.HasPrefix(key, stackobjects.Key(from, jobs.ScheduleFolder, "")) {
			return nil // schedules do not follow a rename
		}
		o, err := s.objects.Get(ctx, key)
		if err != nil {
			return bucket.Failed(err, "read "+key)
		}
		_, err = s.objects.Put(ctx, stackobjects.Key(to, "")+stackobjects.Context(from, key), o.Data, bucket.Condition{})
		return bucket.Failed(err, "write the stack "+to.String())
	})
}

// rewrite writes the next checkpoint of a stack that is being renamed, with the URNs of its new name, and returns the
// head with it. A URN starts a JSON string with the stack's and the project's names, which need no escapes; a URN
// inside a secret's ciphertext stays as it is.
func (s *Store) rewrite(ctx context.Context, h Head, from, to deployments.StackName) (Head, error) {
	data, err := s.checkpointJSON(ctx, from, h.Version)
	if err != nil {
		return h, err
	}
	data = bytes.ReplaceAll(data, []byte(urnOf(from)), []byte(urnOf(to)))
	data = bytes.ReplaceAll(data, []byte(rootOf(from)), []byte(rootOf(to)))
	h.moveTo(writtenOf(max(h.Next, h.Version+1), data), s.now())
	key := checkpointKey(to, h.Version)
	_, err = s.objects.Put(ctx, key, s.packed(h.ID, h.Version, data), bucket.Condition{})
	return h, bucket.Failed(err, "write "+key)
}

func urnOf(name deployments.StackName) string {
	return `"urn:pulumi:` + name.Stack + "::" + name.Project + "::"
}

// rootOf returns the end of the URN of a stack's root resource, after its beginning has been rewritten.
func rootOf(name deployments.StackName) string {
	return "::pulumi:pulumi:Stack::" + name.Project + "-" + name.Stack + `"`
}
