package statestore

import (
	"context"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Finish describes the end of an update.
type Finish struct {
	Scope
	// Saves is the number of the last save that is stored.
	Saves int
	// Extra are deltas that were never saved; they follow the saved ones.
	Extra []engine.Delta
	// Carried says that Extra are the save after the last one that is stored: an earlier attempt may have stored it.
	Carried bool
	// Integrity, if not empty, is an invariant that the snapshot breaks and that cannot be repaired. It is written to
	// the checkpoint.
	Integrity string
	// Check, if not nil, may refuse the end by the stack's head: then nothing is written.
	Check func(Head) error
	// Beside, if not nil, is called once the update is known to have the stack, while its checkpoint is written. The head
	// moves only after it has returned without an error.
	Beside func(ctx context.Context) error
}

// saves returns the number of the last save that may be stored.
func (f Finish) saves() int {
	if f.Carried {
		return f.Saves + 1
	}
	return f.Saves
}

// Finish compacts the update's base and deltas into its checkpoint and commits it. A repeated Finish has no effect. A
// snapshot that breaks an invariant is repaired, or else written with the error in its metadata: results of executed
// steps are never dropped, and CheckIntegrity reports the error to the next update. CodeConflict: the update does not
// have the stack (any more).
//
// What does not depend on one another is done at once: the head, the deltas and the list of them are read beside each
// other, and then the checkpoint is written beside what Beside does. The head moves when all of it is there.
func (s *Store) Finish(ctx context.Context, f Finish) (Written, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	holding, beside, known := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	var h Head
	var claim Claim
	go func() {
		err := panics.Do("ending "+f.Update.String(), func() (err error) {
			h, claim, err = s.mayFinish(ctx, f)
			return err
		})
		if holding <- err; err != nil || f.Beside == nil {
			beside <- err
			return
		}
		beside <- panics.Do("ending "+f.Update.String(), func() error { return f.Beside(ctx) })
	}()
	go func() {
		known <- panics.Do("ending "+f.Update.String(), func() error { return s.knowsAll(ctx, f) })
	}()
	d, err := s.fold(ctx, f)
	if not := <-holding; not != nil {
		return Written{}, not
	}
	w, over := h.written(), f.Update.Number() > 0 && h.Version == f.Update.Number()
	if !over {
		if w, err = s.writeEnd(ctx, f, claim, d, <-known, err); err != nil {
			stop()
		}
	}
	if not := <-beside; over || err == nil {
		err = not
	}
	if err != nil || over {
		return w, err
	}
	if w.Version == 0 {
		return Written{Resources: h.Resources}, s.Commit(ctx, claim, Written{})
	}
	return w, s.Commit(ctx, claim, w)
}

// writeEnd writes the checkpoint of an update; the zero Written if it may end without one. Less is why what it has
// saved cannot be committed, and unread why its base and deltas cannot be read.
func (s *Store) writeEnd(ctx context.Context, f Finish, c Claim, d *draft, less, unread error) (Written, error) {
	switch {
	case less != nil:
		return Written{}, less
	case bucket.Unreadable(unread) != nil && s.untouched(ctx, f):
		return Written{}, nil
	case unread != nil:
		return Written{}, unread
	}
	w, err := s.write(ctx, c, d)
	if err == nil {
		err = s.noteGenerations(ctx, f.Update.StackName, d)
	}
	return w, err
}

// mayFinish returns the head of an update's stack, and the update's claim unless it has its version already.
func (s *Store) mayFinish(ctx context.Context, f Finish) (h Head, c Claim, err error) {
	if h, err = s.Head(ctx, f.Update.StackName); err == nil && f.Check != nil {
		err = f.Check(h)
	}
	if n := f.Update.Number(); err == nil && (n == 0 || h.Version != n) {
		c, err = h.claimOf(f.Update)
	}
	return h, c, err
}

// knowsAll reports, as CodeConflict, that an update has saved more than its end knows of, and, as CodeFormat, that one
// of its saves is missing.
func (s *Store) knowsAll(ctx context.Context, f Finish) error {
	last, err := s.LastSave(ctx, f.Update)
	if err != nil || last <= f.saves() {
		return err
	}
	more, err := s.LoadDeltas(ctx, f.Update, f.saves(), last)
	if err == nil && len(more) > 0 {
		err = deployments.Errorf(deployments.CodeConflict, "update %s has saved more than is to be committed: %d times and "+
			"not %d", f.Update, last, f.saves())
	}
	return err
}

// untouched reports whether an update has changed nothing. Such an update may end without a version, and must when its
// base cannot be read.
func (s *Store) untouched(ctx context.Context, f Finish) bool {
	deltas, err := s.LoadDeltas(ctx, f.Update, 0, f.Saves)
	return err == nil && len(deltas)+len(f.Extra) == 0
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
	deltas = append(deltas, f.Extra...)
	codec, err := s.bags(ctx, f.Scope, &results{saves: f.saves()}, deltas)
	if err != nil {
		return nil, err
	}
	d := &draft{base: base, codec: codec, integrity: f.Integrity, next: map[urn.URN]int{}}
	if d.secrets, err = r.provider(f.Secrets); err != nil {
		return nil, err
	}
	snap := engine.NewSnapshot(base.States(), slices.Clone(base.Pending()))
	for _, delta := range deltas {
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
