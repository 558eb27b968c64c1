package statestore

import (
	"context"
	"crypto/hmac"
	"errors"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// A head is not sealed but readable. It has a MAC, and the digest of the newest checkpoint, so a change that the
// service did not make is detected (docs/adr/0017). An older head that is put back with its own MAC is
// detected by what else its stack has; see stale_head.go.

// purposeHeads is the purpose of the key that authenticates heads.
const purposeHeads = "heads"

// keptRanges limits Head.States. A stack has more of them only if more updates ended without a state.
const keptRanges = 1000

// authentic reports, as CodeFormat, that this service did not write a head. A head without a MAC is accepted only until
// the heads of the bucket have been adopted.
func (s *Store) authentic(name deployments.StackName, key string, data []byte) error {
	right, given, err := s.sealed.MAC(purposeHeads, name.String(), data)
	switch {
	case err != nil:
		return damagedHead(key, err)
	case given == "" && !s.Keys.Authenticated(), hmac.Equal([]byte(right), []byte(given)):
		return nil
	}
	return deployments.Errorf(deployments.CodeFormat,
		"%s was not written by this service: put back the last good copy of this object, or, if the "+
			"change is meant, "+
			"accept it with `deployctl key adopt %s`", key, name)
}

// AdoptStack accepts the head and the newest checkpoint of a stack as they are, whoever wrote them; all checkpoints in
// a bucket whose heads were never authenticated. A head that is older than what its stack has catches up.
func (s *Store) AdoptStack(ctx context.Context, name deployments.StackName) error {
	if err := name.Validate(); err != nil {
		return err
	}
	key := stackobjects.Key(name, "head.json")
	for {
		o, err := s.objects.Get(ctx, key)
		if errors.Is(err, bucket.ErrAbsent) {
			return s.absent(ctx, name)
		}
		if err != nil {
			return bucket.Failed(err, "read "+key)
		}
		h, err := parseHead(key, o.Data)
		if err != nil {
			return err
		}
		if err := s.adoptStates(ctx, name, &h); err != nil {
			return err
		}
		s.cacheIdentity(name, h)
		if err := s.catchUp(ctx, name, &h); err != nil {
			return err
		}
		s.cacheIdentity(name, Head{})
		err = s.writeHead(ctx, name, h, bucket.Condition{Tag: o.Tag})
		if !errors.Is(err, bucket.ErrChanged) {
			return err
		}
	}
}

// addState adds a version to States, which is newer than those there are, and drops the oldest of too many ranges.
func (h *Head) addState(version int) {
	ranges := slices.Clone(h.States) // it may be shared
	switch last := len(ranges) - 1; {
	case last >= 0 && version <= ranges[last][1]: // it is there
	case last >= 0 && version == ranges[last][1]+1:
		ranges[last][1] = version
	default:
		ranges = append(ranges, [2]int{version, version})
	}
	h.States = ranges[max(0, len(ranges)-keptRanges):]
}

// hadState reports whether a version has had a checkpoint.
func (h *Head) hadState(version int) bool {
	return slices.ContainsFunc(h.States, func(r [2]int) bool { return r[0] <= version && version <= r[1] })
}

// adoptStates accepts checkpoints of a stack, as AdoptStack says, and enters them into its head. What cannot be read
// stays as it is.
func (s *Store) adoptStates(ctx context.Context, name deployments.StackName, h *Head) error {
	versions := []int{h.Version}
	if !s.Keys.Authenticated() {
		var err error
		if versions, _, err = s.versions(ctx, name); err != nil {
			return err
		}
		h.States = nil
	}
	for _, version := range versions {
		w, err := s.adoptCheckpoint(ctx, name, h.ID, version)
		switch {
		case errors.Is(err, bucket.ErrAbsent), bucket.Unreadable(err) != nil:
			continue
		case err != nil:
			return err
		}
		h.addState(version)
		if version == h.Version {
			h.Digest, h.Resources, h.Pending = w.Digest, w.Resources, w.Pending
		}
	}
	return nil
}

// adoptHeads accepts, once, every head of a bucket that was written before heads were authenticated, and records that
// in the keyring: from then on a head without a MAC is rejected.
func (s *Store) adoptHeads(ctx context.Context) error {
	stacks, err := s.ListStacks(ctx, "", "")
	if err != nil {
		return err
	}
	for _, info := range stacks {
		if err := s.AdoptStack(ctx, info.Stack); err != nil && deployments.CodeOf(err) != deployments.CodeNotFound &&
			bucket.Unreadable(err) == nil {
			return err
		}
	}
	return s.Keys.Authenticate(ctx)
}
