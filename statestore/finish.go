package statestore

import (
	"context"
	"slices"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
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
	// Check, if not nil, may refuse the end by the stack's head: then nothing is written. It is called again, and Beside
	// after it, if the head turns out to be another one.
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
// What does not depend on one another is done at once: the deltas and the list of what there is of the update are read
// beside each other, and then the checkpoint is written beside what Beside does. The head moves when all of it is
// there.
//
// The head is mostly that of the claim, which this process has written, and is not read then: it moves on the condition
// that it is still there. Else, what was written beside counts for nothing, and is written again.
func (s *Store) Finish(ctx context.Context, f Finish) (Written, error) {
	name := f.Update.StackName
	if h, _, known := s.knownHead(name, claimKnownFor); known && h.Active != nil && h.Active.Version == f.Update.Version {
		w, err := s.finish(ctx, f, func(context.Context) (Head, error) { return h, nil })
		if deployments.CodeOf(err) != deployments.CodeConflict {
			return w, err
		}
		s.heads.drop(name)
	}
	return s.finish(ctx, f, func(ctx context.Context) (Head, error) { return s.Head(ctx, name) })
}

// finish is Finish by a head.
func (s *Store) finish(
	ctx context.Context, f Finish, head func(context.Context) (Head, error),
) (Written, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	holding, beside, known := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	var h Head
	var claim Claim
	go func() {
		err := panics.Do("ending "+f.Update.String(), func() (err error) {
			if h, err = head(ctx); err == nil {
				claim, err = f.mayEnd(h)
			}
			return err
		})
		if holding <- err; err != nil || f.Beside == nil {
			beside <- err
			return
		}
		beside <- panics.Do("ending "+f.Update.String(), func() error { return f.Beside(ctx) })
	}()
	leaves := true // something for Sweep
	go func() {
		known <- panics.Do("ending "+f.Update.String(), func() (err error) {
			leaves, err = s.knowsAll(ctx, f)
			return err
		})
	}()
	d, err := s.fold(ctx, f)
	if not := <-holding; not != nil {
		return Written{}, not
	}
	w, over := h.written(), f.Update.Number() > 0 && h.Version == f.Update.Number()
	if !over {
		if w, err = s.writeEnd(ctx, f, claim, d, sync.OnceValue(func() error { return <-known }), err); err != nil {
			stop()
		}
	}
	if not := <-beside; over || err == nil {
		err = not
	}
	if err != nil || over {
		return w, err
	}
	if w.Version == 0 { // the head that is remembered may be another one by now, and Commit has nothing to write to it
		if err := s.Holds(ctx, claim); err != nil {
			return Written{}, err
		}
	}
	if err = s.Commit(ctx, claim, w); err == nil && !leaves {
		s.swept.Add(f.Update, struct{}{})
	}
	if w.Version == 0 {
		return Written{Resources: h.Resources}, err
	}
	return w, err
}

// writeEnd writes the checkpoint of an update; the zero Written if it may end without one. Less returns why what it has
// saved cannot be committed, once that is known, and unread is why its base and deltas cannot be read. The checkpoint
// is written before less is known, but does not replace another one, which may have more: the head does not name it
// yet.
func (s *Store) writeEnd(
	ctx context.Context, f Finish, c Claim, d *draft, less func() error, unread error,
) (Written, error) {
	if unread != nil {
		if err := less(); err != nil {
			return Written{}, err
		}
		if bucket.Unreadable(unread) != nil && s.untouched(ctx, f) {
			return Written{}, nil
		}
		return Written{}, unread
	}
	w, err := s.writeUnless(ctx, c, d, less)
	if err == nil {
		err = less()
	}
	if err == nil {
		err = s.noteGenerations(ctx, f.Update.StackName, d)
	}
	return w, err
}

// mayEnd returns the claim of an update by the head of its stack; none if it has its version already.
func (f Finish) mayEnd(h Head) (c Claim, err error) {
	if f.Check != nil {
		err = f.Check(h)
	}
	if n := f.Update.Number(); err == nil && (n == 0 || h.Version != n) {
		c, err = h.claimOf(f.Update)
	}
	return c, err
}

// knowsAll reports, as CodeConflict, that an update has saved more than its end knows of, and, as CodeFormat, that one
// of its saves is missing. It returns whether the update leaves something that is to be removed once it has ended.
func (s *Store) knowsAll(ctx context.Context, f Finish) (leaves bool, err error) {
	if f.Saves == 0 { // mostly there is none: what else the list tells of the update saves another one after the next
		there, err := s.workingFolders(ctx, f.Update)
		if err != nil || !slices.Contains(there, stackobjects.UpdateKey(f.Update, "delta", "")) {
			return len(there) > 0, err
		}
	}
	last, err := s.Updates.LastSave(ctx, f.Update)
	if err != nil || last <= f.saves() {
		return true, err
	}
	more, err := s.Updates.LoadDeltas(ctx, f.Update, f.saves(), last)
	if err == nil && len(more) > 0 {
		err = deployments.Errorf(deployments.CodeConflict, "update %s has saved more than is to be committed: %d times and "+
			"not %d", f.Update, last, f.saves())
	}
	return true, err
}

// untouched reports whether an update has changed nothing. Such an update may end without a version, and must when its
// base cannot be read.
func (s *Store) untouched(ctx context.Context, f Finish) bool {
	deltas, err := s.Updates.LoadDeltas(ctx, f.Update, 0, f.Saves)
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
	deltas, err := s.Updates.LoadDeltas(ctx, f.Update, 0, f.Saves)
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
	snap := snapshot.New(base.States(), slices.Clone(base.Pending()))
	for _, delta := range deltas {
		snap.Apply(delta)
		if delta.Next > 0 && delta.State != nil {
			d.next[delta.State.URN] = max(d.next[delta.State.URN], delta.Next)
		}
	}
	d.states, d.pending = snap.States()
	if err := snapshot.Verify(d.states); err != nil {
		d.repair(err)
	}
	return d, nil
}

// repair repairs states that break an invariant, or records the invariant.
func (d *draft) repair(broken error) {
	repaired := snapshot.Repair(d.states)
	switch {
	case snapshot.Verify(repaired) == nil:
		d.states, d.integrity = repaired, ""
	case d.integrity == "":
		d.integrity = broken.Error()
	}
}
