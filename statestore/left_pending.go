package statestore

import (
	"context"
	"encoding/json"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// LeftPending is what an update left pending in the state that it committed.
type LeftPending struct {
	// Operations counts the pending operations; 0 when another version is the stack's state by now.
	Operations int
	// Readable: the service can decrypt the state by itself. Secrets is the type of the state's secrets provider.
	Readable bool
	Secrets  string
	// Bytes is the size of the state, as JSON.
	Bytes int
}

// LeftPending returns what an update left pending. It decrypts nothing, and reads no checkpoint whose head counts no
// pending operation: most updates that fail leave none.
func (s *Store) LeftPending(ctx context.Context, u deployments.UpdateName) (left LeftPending, err error) {
	h, err := s.Head(ctx, u.StackName)
	if err != nil || h.Version == 0 || h.Version != u.Number() || h.Pending == 0 {
		return left, err
	}
	data, err := s.checkpointJSON(ctx, u.StackName, h.Version)
	if err != nil {
		return left, err
	}
	var f struct {
		Deployment struct {
			Pending []json.RawMessage `json:"pending_operations"`
			Secrets *struct {
				Type string `json:"type"`
			} `json:"secrets_providers"`
		} `json:"deployment"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return left, bucket.Damaged(checkpointKey(u.StackName, h.Version), err)
	}
	left.Operations, left.Readable, left.Bytes = len(f.Deployment.Pending), true, len(data)
	if p := f.Deployment.Secrets; p != nil {
		left.Secrets, left.Readable = p.Type, p.Type == secretsService
	}
	return left, nil
}
