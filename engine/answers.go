package engine

import "slices"

// A reply often depends on nothing but how a step or a plan ends. It is then sent along, and whoever carries the
// command out hands it to the program, which goes on while the end travels to the core. What the program asks next
// finds an entry that is not done yet and waits for it like for any other: so nothing is decided in another order.

// afterStep is the reply to the entry if its step is done; nil if that is not certain before.
func (r *Run) afterStep(e *entry) *Reply {
	if r.goal.DryRun || !e.New.Custom || !slices.Contains(mutating, e.Kind) {
		return nil
	}
	return r.foresee(e, Reply{Stables: e.stables(), Result: ResultSuccess})
}

// afterPlan is the reply to the entry if its plan comes to no change; nil if that is not certain before. Only what was
// registered earlier and is still on its way could decide otherwise.
func (r *Run) afterPlan(e *entry, old *State) *Reply {
	certain := old != nil && e.New.Custom && !e.Imported && e.Forced == nil && !old.External && !old.PendingReplacement
	if !certain || r.Entries[r.firstUndone()] != e {
		return nil
	}
	return r.foresee(e, Reply{ID: old.ID, Object: old.Outputs, Result: ResultSuccess})
}

func (r *Run) foresee(e *entry, reply Reply) *Reply {
	if e.Epoch != r.Epoch {
		return nil
	}
	reply.Epoch, reply.Seq, reply.URN = e.Epoch, e.Seq, e.URN
	return &reply
}

// to reports that a foreseen reply is the one that the entry waits for, and not one of an earlier epoch.
func (a *Reply) to(e *entry) bool { return a != nil && a.Epoch == e.Epoch && a.Seq == e.Seq }
