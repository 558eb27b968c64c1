package statestore

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// Status describes a stack for an operator, by its head, the end of its history and its last drift check: four requests
// of the bucket. CodeNotFound when there is none. What cannot be read of it is Damaged.
func (s *Store) Status(ctx context.Context, name deployments.StackName) (st deployments.StackStatus, err error) {
	if st.StackInfo, err = s.Stack(ctx, name); err == nil {
		st.Last, err = s.Updates.LastEnded(ctx, name)
	}
	if err == nil {
		st.Drift, err = s.driftStatus(ctx, name)
	}
	if bucket.Unreadable(err) != nil {
		st.Stack, st.Damaged, err = name, err.Error(), nil
	}
	return st, err
}

func (s *Store) driftStatus(ctx context.Context, name deployments.StackName) (*deployments.DriftStatus, error) {
	d, err := s.Jobs.Drift(ctx, name)
	switch {
	case deployments.CodeOf(err) == deployments.CodeNotFound && err != nil:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &deployments.DriftStatus{At: d.At, Resources: len(d.Resources), Remediated: d.Remediation != nil}, nil
}
