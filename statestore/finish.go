package statestore

import (
	"context"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Finish describes the end of an update.
type Finish struct {
	Scope
	// Saves is the number of the last save.
	Saves int
	// Extra are deltas that were never saved; they follow the saved ones.
	Extra []engine.Delta
	// Integrity, if not empty, is an invariant that the snapshot breaks and that cannot be repaired. It is written to
	// the checkpoint.
	Integrity string
}

// Finish compacts the update's base and deltas into its checkpoint and commits it. A repeated Finish has no effect. A
// snapshot that breaks an invariant is repaired, or else written with the error in its metadata: results of executed
// steps are never dropped, and CheckIntegrity reports the error to the next update. CodeConflict: the update does not
// have the stack (any more).
func (s *Store) Finish(ctx context.Context, f Finish) (Written, error) {
	h, err := s.Head(ctx, f.Update.StackName)
	if err != nil {
		return Written{}, err
	}
	if n := f.Update.Number(); n > 0 && h.Version == n {
		return h.written(), nil
	}
	claim, err := h.claimOf(f.Update)
	if err != nil {
		return Written{}, err
	}
	known := make(chan error, 1)
	go func() { known <- s.knowsAll(ctx, f) }()
	d, err := s.fold(ctx, f)
	if less := <-known; less != nil {
		return Written{}, less
	}
	if bucket.Unreadable(err) != nil && s.untouched(ctx, f) {
		return Written{Resources: h.Resources}, s.Commit(ctx, claim, Written{})
	}
	if err != nil {
		return Written{}, err
	}
	w, err := s.write(ctx, claim, d)
	if err == nil {
		err = s.noteGenerations(ctx, f.Update.StackName, d)
	}
	if err != nil {
		return Written{}, err
	}
	return w, s.Commit(ctx, claim, w)
}

// knowsAll reports, as CodeConflict, that an update has saved more than its end knows of, and, as CodeFormat, that one
// of its saves is missing.
func (s *Store) knowsAll(ctx context.Context, f Finish) error {
	last, err := s.LastSave(ctx, f.Update)
	if err != nil || last <= f.Saves {
		return err
	}
	more, err := s.LoadDeltas(ctx, f.Update, f.Saves, last)
	if err == nil && len(more) > 0 {
		err = deployments.Errorf(deployments.CodeConflict, "update %s has saved more than is to be committed: %d times and "+
			"not %d", f.Update, last, f.Saves)
	}
	return err
}

// untouched reports whether an update has changed nothing. Such an update may end without a version, and must when its
// base cannot be read.
func (s *Store) untouched(ctx context.Context, f Finish) bool {
	deltas, err := s.LoadDeltas(ctx, f.Update, 0, f.Saves)
	return err == nil && len(deltas) == 0
}

// fold applies an update's deltas to its base.
func (s *Store) fold(ctx context.Context, f Finish) (*draft, error) {
	r, err := s.stackKeysOf(ctx, f.Update.StackName)
	if err != nil {
		return nil, err
	}
	base, err := s.Checkpoint(ctx, f.Update.StackName, f.Base, f.Secrets)
	if err != nil {
		return nil, err
	}
	deltas, err := s.LoadDeltas(ctx, f.Update, 0, f.Saves)
	if err != nil {
		return nil, err
	}
	codec, err := s.Bags(ctx, f.Scope)
	if err != nil {
		return nil, err
	}
	d := &draft{base: base, codec: codec, integrity: f.Integrity, next: map[urn.URN]int{}}
	if d.secrets, err = r.provider(f.Secrets); err != nil {
		return nil, err
	}
	snap := engine.NewSnapshot(base.States(), slices.Clone(base.Pending()))
	for _, delta := range append(deltas, f.Extra...) {
		snap.Apply(delta)
		if delta.Next > 0 && delta.State != nil {
			d.next[delta.State.URN] = max(d.next[delta.State.URN], delta.Next)
		}
	}
	d.states, d.pending = snap.States()
	if err := engine.Verify(d.states); err != nil {
		d.repair(err)
	}
	return d, nil
}

// repair repairs states that break an invariant, or records the invariant.
func (d *draft) repair(broken error) {
	repaired := engine.Repair(d.states)
	switch {
	case engine.Verify(repaired) == nil:
		d.states, d.integrity = repaired, ""
	case d.integrity == "":
		d.integrity = broken.Error()
	}
}
