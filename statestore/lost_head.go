package statestore

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	"github.com/deployctl/deployctl/statestore/updates"
)

// A head is written before all other objects of its stack and deleted after them. So a stack with checkpoints or a
// history but without a head has lost its head. Treating it as absent would create all its resources again.

// absent returns why a stack has no head: CodeNotFound when there is no such stack, CodeFormat when its head was lost.
func (s *Store) absent(ctx context.Context, name deployments.StackName) error {
	latest, err := s.latestTrace(ctx, name)
	if err != nil {
		return err
	}
	next, err := s.nextOf(ctx, name)
	if err != nil {
		return err
	}
	if latest < next { // none, or written late by an update of a removed stack
		return deployments.NoStack(name)
	}
	key := stackobjects.Key(name, "head.json")
	return deployments.Errorf(deployments.CodeFormat,
		"the stack %s is damaged: its head %s is missing, though version %d of it is there; put back the last good "+
			"copy of this object (an earlier version of the bucket's, or of its backup). If there is none, an admin can "+
			"remove what is left of the stack with `deployctl stack rm --force`, and have it rebuilt from its program and "+
			"what exists: `deployctl stack init`, then `deployctl up --adopt`", name, key, latest)
}

// removeRemains removes what is left of a stack whose head was lost. Its identity is not known, so neither are the
// objects that its names have shared: those stay.
//
// Until its last version is noted, the stack is damaged, and nobody can make another of its name. After that only
// objects of its versions are left, which another stack never gets.
func (s *Store) removeRemains(ctx context.Context, name deployments.StackName) error {
	prefix := stackobjects.Key(name, "")
	l, err := s.objects.List(ctx, bucket.Query{Prefix: prefix})
	if err != nil {
		return bucket.Failed(err, "list the stack "+name.String())
	}
	latest := 0
	var versioned, rest []string
	for _, key := range l.Keys {
		version := versionOf(key[len(prefix):])
		latest = max(latest, version)
		if version > 0 {
			versioned = append(versioned, key)
		} else {
			rest = append(rest, key)
		}
	}
	remove := func(key string) error { return bucket.Failed(s.objects.Delete(ctx, key), "delete "+key) }
	if err := bucket.Each(rest, remove); err != nil {
		return err
	}
	if err := s.hasNoHead(ctx, name); err != nil {
		return err
	}
	s.cacheIdentity(name, Head{})
	if err := s.raiseTombstone(ctx, name, latest+1, "", ""); err != nil {
		return err
	}
	return bucket.Each(versioned, remove)
}

// hasNoHead returns nil if a stack has no head, CodeConflict if it has one: it was put back.
func (s *Store) hasNoHead(ctx context.Context, name deployments.StackName) error {
	head := stackobjects.Key(name, "head.json")
	switch _, err := s.objects.Tag(ctx, head); {
	case errors.Is(err, bucket.ErrAbsent):
		return nil
	case err != nil:
		return bucket.Failed(err, "read "+head)
	}
	return deployments.Errorf(deployments.CodeConflict, "the head of the stack %s was put back meanwhile", name)
}

// versionOf returns the version to which an object in the folder of a stack belongs; 0 if to none.
func versionOf(key string) int {
	part, rest, _ := strings.Cut(key, "/")
	switch part {
	case "history":
		return updates.VersionOfEntry(key)
	case "checkpoints":
		rest, _ = strings.CutSuffix(rest, checkpointForm)
	case "updates":
		rest, _, _ = strings.Cut(rest, "/")
	default:
		return 0
	}
	version, err := strconv.Atoi(rest)
	if err != nil || version > deployments.MaxVersion { // a person's copy, or nobody's version
		return 0
	}
	return version
}

// latestTrace returns the newest version that has a checkpoint or an entry in the history; 0 when there is none.
func (s *Store) latestTrace(ctx context.Context, name deployments.StackName) (int, error) {
	latest, err := s.latestEntry(ctx, name)
	if err != nil {
		return 0, err
	}
	versions, _, err := s.versions(ctx, name)
	if n := len(versions); n > 0 {
		latest = max(latest, versions[n-1])
	}
	return latest, err
}

// latestEntry returns the newest version that the names of a history have; 0 when there is none. Nothing is given out
// by it: without the head no entry can be read.
func (s *Store) latestEntry(ctx context.Context, name deployments.StackName) (int, error) {
	history := stackobjects.Key(name, "history", "")
	l, err := s.objects.List(ctx, bucket.Query{Prefix: history, Limit: 1})
	if err != nil || len(l.Keys) == 0 {
		return 0, bucket.Failed(err, "list "+history)
	}
	return updates.VersionOfEntry(l.Keys[0]), nil
}

// missing returns the error about a checkpoint that does not exist: CodeFormat when the stack's head names it.
func (s *Store) missing(ctx context.Context, name deployments.StackName, version int) error {
	key := checkpointKey(name, version)
	h, err := s.Head(ctx, name)
	if err != nil {
		return err
	}
	if h.Version != version {
		return deployments.Errorf(deployments.CodeNotFound, "the stack %s has no version %d; `deployctl stack history` "+
			"lists the versions", name, version)
	}
	return unusable(key, errors.New("it is missing, and it is the newest state of its stack"))
}

// unusable returns the error about a checkpoint that cannot be used.
func unusable(key string, err error) error {
	return deployments.Errorf(deployments.CodeFormat, "%s is damaged: %w; put back the last good copy of this "+
		"object, make an earlier version "+
		"the newest with `deployctl stack restore VERSION` (`deployctl stack history` lists them), or put a valid "+
		"state in its place with "+
		"`deployctl stack import`", key, err)
}
