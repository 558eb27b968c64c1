package updates

import (
	"context"
	"errors"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// PutRequest stores an update's request, sealed, including secrets, so that any worker can host the update later.
func (s *Store) PutRequest(ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest) error {
	return s.putRequest(ctx, u, r, bucket.Condition{})
}

// putRequest seals a request for the stack for which it was submitted. The process may still know a former stack of the
// name: it reads the head meanwhile.
func (s *Store) putRequest(
	ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest, c bucket.Condition,
) error {
	if r.Submitted == nil || r.Submitted.StackID == "" {
		return s.stacks.PutIf(ctx, u.StackName, stackobjects.UpdateKey(u, "update"), r, c)
	}
	return s.stacks.PutIn(ctx, s.stacks.ByID(r.Submitted.StackID), u.StackName, stackobjects.UpdateKey(u, "update"), r, c)
}

// BeginPreview stores the request of a preview. CodeConflict: another workflow run has begun the preview.
func (s *Store) BeginPreview(ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest) error {
	err := s.putRequest(ctx, u, r, bucket.Condition{Absent: true})
	if !errors.Is(err, bucket.ErrChanged) {
		return err
	}
	begun, err := s.Request(ctx, u)
	if err == nil && (begun.Submitted == nil || begun.Submitted.Run != r.Submitted.Run) {
		err = deployments.Errorf(deployments.CodeConflict, "the preview %s was begun before: ask for another one", u)
	}
	return err
}

// Request returns what PutRequest or BeginPreview stored; CodeNotFound when there is none.
func (s *Store) Request(ctx context.Context, u deployments.UpdateName) (deployments.UpdateRequest, error) {
	var r deployments.UpdateRequest
	_, err := s.stacks.GetJSON(ctx, u.StackName, stackobjects.UpdateKey(u, "update"), &r)
	return r, err
}

// PutInfo stores or replaces the description of an update. A numbered update becomes part of its stack's history.
func (s *Store) PutInfo(ctx context.Context, info deployments.UpdateInfo) error {
	return s.stacks.PutJSON(ctx, info.Update.StackName, infoKey(info.Update), info)
}

// BeginInfo stores the description of an update that begins, unless there is one: then it returns that one and false.
func (s *Store) BeginInfo(
	ctx context.Context, info deployments.UpdateInfo,
) (there deployments.UpdateInfo, begun bool, err error) {
	err = s.stacks.PutIf(ctx, info.Update.StackName, infoKey(info.Update), info, bucket.Condition{Absent: true})
	if !errors.Is(err, bucket.ErrChanged) {
		return info, err == nil, err
	}
	there, err = s.Info(ctx, info.Update)
	return there, false, err
}

// Info returns the description of an update; CodeNotFound when there is none.
func (s *Store) Info(ctx context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error) {
	var info deployments.UpdateInfo
	_, err := s.stacks.GetJSON(ctx, u.StackName, infoKey(u), &info)
	return info, noUpdate(u, err)
}

// noUpdate says of which update there is nothing; its cause stays ErrAbsent.
func noUpdate(u deployments.UpdateName, err error) error {
	if !errors.Is(err, bucket.ErrAbsent) {
		return err
	}
	return &deployments.Error{Code: deployments.CodeNotFound, Err: err, Message: fmt.Sprintf("the stack %s has no update "+
		"%s, or it is not kept any more: `deployctl stack history` lists those there are", u.StackName, u.Version)}
}

// infoKey sorts the newest numbered update first.
func infoKey(u deployments.UpdateName) string {
	if n := u.Number(); n > 0 {
		return stackobjects.Key(u.StackName, "history", fmt.Sprintf("%010d", deployments.MaxVersion+1-n))
	}
	return stackobjects.UpdateKey(u, "info")
}
