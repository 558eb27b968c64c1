package statestore

import (
	"context"
	"errors"
	"path"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
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
	key := stackKey(name, "head.json")
	return deployments.Errorf(deployments.CodeFormat,
		"the stack %s is damaged: its head %s is missing, though version %d of it is there; put back the last good "+
			"copy of this object "+
			"(an earlier version of the bucket's, or of its backup)", name, key, latest)
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
	history := stackKey(name, "history", "")
	l, err := s.objects.List(ctx, bucket.Query{Prefix: history, Limit: 1})
	if err != nil || len(l.Keys) == 0 {
		return 0, bucket.Failed(err, "list "+history)
	}
	return versionOfEntry(l.Keys[0]), nil
}

// versionOfEntry returns the version of a history's entry; 0 when the key is not one of a history.
func versionOfEntry(key string) int {
	inverse, err := strconv.Atoi(path.Base(key))
	if err != nil || inverse <= 0 || inverse > deployments.MaxVersion {
		return 0
	}
	return deployments.MaxVersion + 1 - inverse
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
