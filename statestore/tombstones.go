package statestore

import (
	"context"
	"errors"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// tombstone remains of a name that no stack has any more: the content of removed/ORG/PROJECT/STACK.json. Temporal keeps
// the workflows of its updates for longer, by name and version, and rejects an id that it has had; and an update of a
// removed stack is none of the next one.
type tombstone struct {
	// Next is the next version: greater than every version that was given out under the name. It never decreases.
	Next int `json:"next"`
	// Moved are the identities of stacks that have left the name by a rename: they are none of the next one.
	Moved []string `json:"moved,omitempty"`
	// To has the names under which they went on, by identity; earlier releases have noted none.
	To map[string]string `json:"to,omitempty"`
}

func removedKey(name deployments.StackName) string {
	return bucket.Key("removed", name.Organization, name.Project, name.Stack+".json")
}

// nextOf returns the next version of a name that no stack has; 1 when none ever had it.
func (s *Store) nextOf(ctx context.Context, name deployments.StackName) (int, error) {
	r, _, err := s.readTombstone(ctx, name)
	return max(r.Next, 1), err
}

// readTombstone returns the tombstone of a name, the zero one when there is none, and the condition for replacing it.
func (s *Store) readTombstone(ctx context.Context, name deployments.StackName) (tombstone, bucket.Condition, error) {
	var r tombstone
	tag, err := s.sealed.GetReadable(ctx, removedKey(name), &r)
	if errors.Is(err, bucket.ErrAbsent) {
		return tombstone{}, bucket.Condition{Absent: true}, nil
	}
	return r, bucket.Condition{Tag: tag}, err
}

// writeTombstone stores the next version of a stack that is about to be deleted; versions before it include those of
// updates that never had the stack and are only in its history. Moved, if not empty, is the identity with which the
// stack goes on under the name to.
func (s *Store) writeTombstone(ctx context.Context, name deployments.StackName, next int, moved, to string) error {
	latest, err := s.Updates.LatestUpdate(ctx, name)
	if err != nil {
		return err
	}
	return s.raiseTombstone(ctx, name, max(next, latest+1), moved, to)
}

func (s *Store) raiseTombstone(ctx context.Context, name deployments.StackName, next int, moved, to string) error {
	for {
		r, unchanged, err := s.readTombstone(ctx, name)
		known := moved == "" || slices.Contains(r.Moved, moved) && r.To[moved] == to
		if err != nil || r.Next >= next && known {
			return err
		}
		r.Next = max(r.Next, next)
		if !known && !slices.Contains(r.Moved, moved) {
			r.Moved = append(r.Moved, moved)
		}
		if !known {
			if r.To == nil {
				r.To = map[string]string{}
			}
			r.To[moved] = to
		}
		if err = s.sealed.PutReadable(ctx, removedKey(name), r, unchanged); !errors.Is(err, bucket.ErrChanged) {
			return err
		}
	}
}

// Knows reports whether a stack has or had the name. An object that cannot be read counts: it is damaged.
func (s *Store) Knows(ctx context.Context, name deployments.StackName) (bool, error) {
	_, err := s.Head(ctx, name)
	if err == nil || bucket.Unreadable(err) != nil {
		return true, nil
	}
	if deployments.CodeOf(err) != deployments.CodeNotFound {
		return false, err
	}
	r, _, err := s.readTombstone(ctx, name)
	return r.Next > 0, err
}
