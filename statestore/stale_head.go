package statestore

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	"github.com/deployctl/deployctl/statestore/updates"
)

// A head that is put back alone has its MAC. But what its stack has besides goes on beyond it: a version that was
// committed, or a checkpoint or saves of a version that the head has never given out. Then one of the two is wrong, and
// nothing is built on either.

// HeadAndNext reads a stack's head, and the next version by it and by the stack's history: that also has updates which
// never had the stack. Both are read at once.
func (s *Store) HeadAndNext(ctx context.Context, name deployments.StackName) (Head, int, error) {
	var h Head
	var newest bucket.Listing
	reading, reads := panics.NewGroup(ctx, "reading a head")
	reading.Go(func() (err error) {
		h, err = s.Head(reads, name)
		return err
	})
	reading.Go(func() (err error) {
		newest, err = s.Updates.Newest(reads, name)
		return err
	})
	if err := reading.Wait(); err != nil {
		return Head{}, 0, err
	}
	next, beyond := h.Next, false
	all := slices.ContainsFunc(newest.Keys, func(key string) bool {
		version := updates.VersionOfEntry(key)
		return version != 0 && version <= h.Version
	}) || !newest.More // what follows the head's version is in what was listed
	err := s.Updates.BelievedIn(ctx, name, newest, h.Version, func(info deployments.UpdateInfo) bool {
		next = max(next, info.Update.Number()+1)
		beyond = beyond || info.Committed && !h.hadState(info.Update.Number())
		return all
	})
	if err == nil && all && !beyond {
		s.heads.noteCurrent(name, h)
	}
	return h, next, err
}

// beyond returns the versions, in order, that were committed after that of a head; withStates also those that have a
// checkpoint and that the head has not given out.
func (s *Store) beyond(ctx context.Context, name deployments.StackName, h Head, withStates bool) ([]int, error) {
	var versions []int
	err := s.Updates.Believed(ctx, name, h.Version, func(info deployments.UpdateInfo) bool {
		if info.Committed && !h.hadState(info.Update.Number()) {
			versions = append(versions, info.Update.Number())
		}
		return true
	})
	if err != nil || !withStates {
		return versions, err
	}
	stored, _, err := s.versions(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, version := range stored {
		if version < h.Next || version <= h.Version || slices.Contains(versions, version) {
			continue
		}
		c, err := s.readCheckpoint(ctx, checkpointKey(name, version))
		if err != nil && !errors.Is(err, bucket.ErrAbsent) && bucket.Unreadable(err) == nil {
			return nil, err
		}
		if err == nil && s.attested(h.ID, version, c) {
			versions = append(versions, version)
		}
	}
	slices.Sort(versions)
	return versions, nil
}

// mostLost bounds the versions of which a head may not know, and of which something is looked for.
const mostLost = 10

// begun returns the last update before next that has saved what it did, and whose version the head has not given out; 0
// if there is none. An update saves only after its claim.
func (s *Store) begun(ctx context.Context, name deployments.StackName, h Head, next int) (int, error) {
	for version := min(next, h.Next+mostLost) - 1; version >= h.Next; version-- {
		u := deployments.UpdateName{StackName: name, Version: strconv.Itoa(version)}
		if saved, err := s.Updates.Saved(ctx, u); err != nil || saved {
			return version, err
		}
	}
	return 0, nil
}

// current reports, as CodeFormat, that a head is older than what its stack has. next is the version that is to be given
// out; it is the head's own, unless something else knows of more versions.
func (s *Store) current(ctx context.Context, name deployments.StackName, h Head, next int) error {
	if next == h.Next && s.heads.isCurrent(name, h) {
		return nil
	}
	versions, err := s.beyond(ctx, name, h, next > h.Next)
	if err != nil {
		return err
	}
	begun, err := s.begun(ctx, name, h, next)
	switch {
	case err != nil:
		return err
	case len(versions) == 0 && begun == 0:
		return nil
	case len(versions) == 0:
		return deployments.Errorf(deployments.CodeFormat, "the stack %s is damaged: its head %s is older than update %d, "+
			"which has made changes; put back the last good copy of this object (an earlier version of the bucket's, or of "+
			"its backup), or have the stack forget what that update did with `deployctl key adopt %s`", name,
			stackobjects.Key(name, "head.json"), begun, name)
	}
	return deployments.Errorf(deployments.CodeFormat, "the stack %s is damaged: its head %s is older than version %d, "+
		"which is there; put back the last good copy of this object (an earlier version of the bucket's, or of its "+
		"backup), or make what is there the stack's state with `deployctl key adopt %s`", name,
		stackobjects.Key(name, "head.json"), slices.Max(versions), name)
}

// Current reports, as CodeFormat, that the head of a stack is older than what the stack has.
func (s *Store) Current(ctx context.Context, name deployments.StackName) error {
	h, err := s.Head(ctx, name)
	if err != nil {
		return err
	}
	return s.current(ctx, name, h, math.MaxInt)
}

// catchUp enters the versions beyond a head into it. The newest that has a checkpoint becomes the stack's.
func (s *Store) catchUp(ctx context.Context, name deployments.StackName, h *Head) error {
	versions, err := s.beyond(ctx, name, *h, true)
	if err != nil {
		return err
	}
	begun, err := s.begun(ctx, name, *h, math.MaxInt)
	if err != nil {
		return err
	}
	for _, version := range versions {
		w, err := s.adoptCheckpoint(ctx, name, h.ID, version)
		switch {
		case err == nil:
			h.moveTo(w, s.now())
		case errors.Is(err, bucket.ErrAbsent), bucket.Unreadable(err) != nil:
			h.addState(version)
			h.Next = max(h.Next, version+1)
		default:
			return err
		}
	}
	if begun != 0 {
		h.Next = max(h.Next, begun+1)
	}
	if h.Active != nil && len(versions) > 0 && (deployments.UpdateName{Version: h.Active.Version}).Number() <=
		slices.Max(versions) {
		h.Active = nil
	}
	return nil
}
