package statestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// RenameStack changes the name, project or organization of a stack with its history, and rewrites the URNs of its
// resources in a new version. CodeExists when there is a stack of that name; CodeConflict when it has an update
// running, or a rename to another name was interrupted; CodeInvalid when it has that name already. An interrupted
// rename is finished by repeating it; until then the stack has both names and cannot be updated.
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
	if err := s.onlyRenaming(ctx, h, from, to); err != nil {
		return err
	}
	target, tag, err := s.readHead(ctx, to)
	switch {
	case err != nil && deployments.CodeOf(err) != deployments.CodeNotFound:
		return err
	case err == nil && target.ID != h.ID:
		return exists(to)
	case err == nil && !target.placeholder(): // an earlier attempt did all but the end
		return s.deleteStack(ctx, from, h.Next, "")
	}
	if h.Version > 0 { // before anything is locked
		if _, err := s.checkpointJSON(ctx, from, h.Version); err != nil {
			return err
		}
	}
	if h, err = s.lockStack(ctx, from, to, true); err != nil {
		return err
	}
	if tag == "" {
		if target, tag, err = s.reserveName(ctx, h, from, to); err != nil {
			return errors.Join(err, s.unlockStack(context.WithoutCancel(ctx), from))
		}
	}
	former := h.Next
	h.Next = max(h.Next, target.Next)
	if err := s.moveObjects(ctx, from, to); err != nil {
		return err
	}
	if h.Version > 0 {
		if h, err = s.rewrite(ctx, h, from, to); err != nil {
			return err
		}
	}
	h.Active, h.Peer = nil, from.String()
	if err := s.writeHead(ctx, to, h, Condition{Tag: tag}); err != nil {
		return err
	}
	return s.deleteStack(ctx, from, former, "")
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
		return damaged(stackKey(from, "head.json"), err)
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
		"the renaming of the stack %s to %s was interrupted: do that one again first, then rename %s", older, newer,
		newer)
}

// placeholder reports whether a head only reserves a name, without any state, for a rename or a removal.
func (h *Head) placeholder() bool {
	return h.Version == 0 && h.Active != nil && h.Active.Version == removal
}

// lockStack keeps updates away from a stack that is being removed, or renamed to peer. CodeConflict when it has an
// update running, or, unless full, resources.
func (s *Store) lockStack(ctx context.Context, name, peer deployments.StackName, full bool) (Head, error) {
	return s.changeHead(ctx, name, func(h *Head) (bool, error) {
		switch {
		case h.Active != nil && h.Active.Version != removal:
			return false, busy(name, h.Active)
		case h.Resources > 0 && !full:
			return false, deployments.Errorf(deployments.CodeConflict,
				"the stack %s still has %s: destroy them first, or forget them with --force", name,
				plural(h.Resources, "resource"))
		}
		h.Fence++
		h.Active = &Active{Version: removal, Writer: rand.Text(), Since: s.now().UTC()}
		if peer != (deployments.StackName{}) {
			h.Peer = peer.String()
		}
		return true, nil
	})
}

func (s *Store) unlockStack(ctx context.Context, name deployments.StackName) error {
	_, err := s.changeHead(ctx, name, func(h *Head) (bool, error) {
		h.Active, h.Peer = nil, ""
		return true, nil
	})
	return err
}

// reserveName reserves the new name with a head that nobody can update, and returns it with its tag.
func (s *Store) reserveName(ctx context.Context, h Head, from, to deployments.StackName) (Head, string, error) {
	next, err := s.nextOf(ctx, to)
	if err != nil {
		return Head{}, "", err
	}
	placeholder := Head{Format: Format, ID: h.ID, Next: next, Active: h.Active, Peer: from.String()}
	if err := s.writeHead(ctx, to, placeholder, Condition{Absent: true}); err != nil {
		if errors.Is(err, ErrChanged) {
			return Head{}, "", exists(to)
		}
		return Head{}, "", err
	}
	return s.readHead(ctx, to)
}

// moveObjects copies all objects of a stack except its head. Sealed objects stay readable: their keys and contexts are
// derived from the stack's identity.
func (s *Store) moveObjects(ctx context.Context, from, to deployments.StackName) error {
	l, err := s.objects.List(ctx, Query{Prefix: stackKey(from, "")})
	if err != nil {
		return failed(err, "list the stack "+from.String())
	}
	return each(l.Keys, func(key string) error {
		if key == stackKey(from, "head.json") || strings.HasPrefix(key, stackKey(from, scheduleFolder, "")) {
			return nil // schedules do not follow a rename
		}
		o, err := s.objects.Get(ctx, key)
		if err != nil {
			return failed(err, "read "+key)
		}
		_, err = s.objects.Put(ctx, stackKey(to, "")+sealContext(from, key), o.Data, Condition{})
		return failed(err, "write the stack "+to.String())
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
	h.moveTo(Written{Version: max(h.Next, h.Version+1), Digest: sha256Hex(data), Resources: h.Resources}, s.now())
	key := checkpointKey(to, h.Version)
	_, err = s.objects.Put(ctx, key, s.packed(h.ID, h.Version, data), Condition{})
	return h, failed(err, "write "+key)
}

func urnOf(name deployments.StackName) string {
	return `"urn:pulumi:` + name.Stack + "::" + name.Project + "::"
}

// rootOf returns the end of the URN of a stack's root resource, after its beginning has been rewritten.
func rootOf(name deployments.StackName) string {
	return "::pulumi:pulumi:Stack::" + name.Project + "-" + name.Stack + `"`
}
