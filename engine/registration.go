package engine

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// register admits a registration. Nothing is decided before the next Ready; only once the update is ending is the
// program answered at once.
func (r *Run) register(ev Registered) {
	e := r.admit(ev.Epoch, ev.Seq, ev.Registration)
	if e == nil {
		return
	}
	e.At, e.Ahead = ev.At, ev.Ahead
	if r.Stopped || r.Waits != nil {
		r.refuse(e)
	}
}

// requestRead admits a read: a registration of a resource that this stack does not own. It is handled as a registration
// of a custom resource with the id in ImportID, so that references, aliases and epochs need no case of their own;
// prepare turns it into an external state with that id.
func (r *Run) requestRead(ev ReadRequested) {
	e := r.admit(ev.Epoch, ev.Seq, Registration{
		Type: ev.Type, Name: ev.Name, Custom: true, Parent: ev.Parent, Provider: ev.Provider, Inputs: ev.Inputs,
		Dependencies: ev.Dependencies, AdditionalSecretOutputs: ev.AdditionalSecretOutputs,
		SourcePosition: ev.SourcePosition, ImportID: ev.ID, Extension: ev.Extension, Digest: ev.Digest,
	})
	if e == nil {
		return
	}
	e.Read = true
	switch {
	case r.Stopped, r.Waits != nil:
		r.refuse(e)
	case ev.ID == "":
		r.reject(e, "the read of %s names no id", e.URN)
	}
}

// admit makes an entry of what the program asked for; nil when the message is of another epoch, repeated, or refused at
// once. A message may come more than once: its sequence number identifies it within the epoch. Numbers may arrive in
// any order, but the order of arrival is the order of registration, so a driver that replays must deliver in the same
// order.
//
// A duplicate never becomes an entry: the URN stays that of the first registration. Its number is kept in Seen, from
// which a resumed run knows that it was handled.
func (r *Run) admit(epoch, seq int, reg Registration) *entry {
	if epoch != r.Epoch || r.bySeq[seq] {
		return nil
	}
	r.bySeq[seq] = true
	e := &entry{Epoch: epoch, Seq: seq, Order: len(r.Entries), Reg: reg}
	if r.adopts() && reg.Type == rootType && r.snap.Live(r.urnOf(reg)) == nil {
		e.Reg.Name = r.rootName(reg.Name)
	}
	e.URN = r.urnOf(e.Reg)
	if first := r.byURN[e.URN]; first != nil {
		r.reject(e, "duplicate resource URN %s: the program registers two resources of this type and name under the "+
			"same parent; give one of them another name", e.URN)
		r.Seen = append(r.Seen, seq)
		return nil
	}
	r.Entries = append(r.Entries, e)
	r.byURN[e.URN] = e
	r.become(e, stageHeld, 0)
	return e
}

// start takes a held entry to its first operation; it reports whether the entry left its stage. The order of the checks
// matters: an earlier epoch's step or answer comes first, because whatever else has changed since must not repeat it;
// then what the entry refers to; then the stored state that it continues, which may be claimed only by one entry.
//
// It may return false any number of times: what it has done until then, such as a claim, can be repeated.
func (r *Run) start(e *entry) bool {
	if r.Stopped {
		r.refuse(e)
		return true
	}
	r.bind(e)
	if op := r.stepOf(e.URN); op != nil {
		return r.attach(e, op)
	}
	// The same goal was carried out in an earlier epoch. If a cascade has deleted the result since, or another goal has
	// replaced it, the answer would be wrong, and the entry is decided like a new one.
	if f := r.marked(e.URN).Done; f != nil && f.Digest == e.goal() && r.isLive(e.URN, f.Key) {
		r.repeatAnswer(e, f)
		return true
	}
	switch missing, on := r.missing(e); {
	case on != nil:
		e.blockedOn = on
		return false
	// The program names what it has not registered, or what it registers only later.
	case missing != "":
		r.reject(e, "%s depends on %s, which %s", e.URN, missing, r.notThere())
		return true
	}
	// Skipped without an error of its own: the one that failed has been reported.
	if r.awaitsResource(e) {
		return false
	}
	if r.failedDependency(e) != "" || r.bindingFails(e) {
		r.finish(e, Reply{Result: ResultSkip})
		return true
	}
	switch old := r.predecessor(e); {
	case old.wait:
		return false
	// It fails without stopping the update: what does not depend on it goes on.
	case old.undecided:
		r.diagnose("error", e.URN, "%s may exist already: an attempt to create it is undecided, and must be settled "+
			"first", e.URN)
		r.finish(e, Reply{Result: ResultFail})
		return true
	case old.conflict != "":
		r.reject(e, "%s", old.conflict)
		return true
	default:
		r.continueOld(e, old)
	}
	r.bind(e)
	r.prepare(e)
	// It is left as it is stored, with the references of its old state and not those of its goal.
	if !r.selected(e) && r.oldInProgress(e) {
		return false
	}
	if (!e.New.Custom || !r.selected(e)) && r.takesTurns(e) { // there is no plan, and so no commit, which would wait
		return false
	}
	r.decide(e)
	return true
}

// notThere says what is wrong with a reference of an entry to what is missing.
func (r *Run) notThere() string {
	if r.adopts() {
		return "is neither in the stack nor imported with it"
	}
	return "the program has not registered"
}

// missing finds what an entry names and what is not decided: a URN that is not registered, or else the last of the
// entries that are not done. Only what was registered before may be named, so that no two wait for each other; and
// in a restricted update or an import, what is stored, because the program need not register that.
func (r *Run) missing(e *entry) (missing urn.URN, on *entry) {
	for _, u := range e.Reg.references() {
		other := r.byURN[u]
		switch {
		case other == nil && !r.mayName(u):
			return u, nil
		case other != nil && other.Order >= e.Order:
			return u, nil
		case other != nil && other.Stage != stageDone:
			on = other
		}
	}
	return "", on
}

// failedDependency returns a failed or skipped resource that the entry needs. There is one only while the update goes
// on: after errors, or beside a create that is undecided. What is left out is skipped without having failed;
// skippedReference reports it.
func (r *Run) failedDependency(e *entry) urn.URN {
	for _, u := range e.Reg.references() {
		if other := r.byURN[u]; other != nil && other.Result != ResultSuccess && !r.marked(u).LeftOut {
			return u
		}
	}
	return ""
}

// prepare makes the new state that the entry asks for, from its registration alone. What the old state adds follows:
// its times, whether its provider wants it read first, and the aliases by which copies and children are still known. A
// field of State that a program sets is set here.
//
// Every reference of the entry must be done and its old state claimed. It runs again after an import, whose result is
// the old state then.
func (r *Run) prepare(e *entry) {
	g := e.Reg
	e.New = State{
		URN: e.URN, Type: g.Type, Custom: g.Custom, Parent: g.Parent, Provider: r.storedProvider(g.Provider),
		Protect: g.Protect != nil && *g.Protect, RetainOnDelete: g.RetainOnDelete != nil && *g.RetainOnDelete,
		Dependencies: g.Dependencies, PropertyDependencies: g.PropertyDependencies,
		AdditionalSecretOutputs: g.AdditionalSecretOutputs, Timeouts: g.Timeouts, ImportID: g.ImportID,
		DeletedWith: g.DeletedWith, ReplaceWith: g.ReplaceWith, IgnoreChanges: g.IgnoreChanges, HideDiff: g.HideDiff,
		ReplaceOnChanges: g.ReplaceOnChanges, SourcePosition: g.SourcePosition, Inputs: g.Inputs, Trigger: g.Trigger,
		TriggerValue: g.TriggerValue, Hooks: g.Hooks, Extension: g.Extension,
	}
	if e.Read {
		e.New.External, e.New.ImportID, e.New.ID = true, "", g.ImportID
	}
	if alias := r.marked(e.URN).Claims; alias != "" {
		e.New.Aliases = []urn.URN{alias}
	}
	if old := r.snap.Get(e.Old); old != nil {
		e.New.RefreshBeforeUpdate = old.RefreshBeforeUpdate
		e.New.Created, e.New.Modified = old.Created, old.Modified
		e.New.Aliases = append(e.New.Aliases, r.keptAliases(old, e)...)
	}
	e.Seed = r.seed(e.URN)
}

// keptAliases returns the aliases of an old state that something is still known by: copies until they are gone, and
// children until they are registered.
func (r *Run) keptAliases(old *State, e *entry) (kept []urn.URN) {
	if len(old.Aliases) == 0 {
		return nil
	}
	children := r.storedChildren(e.URN)
	for _, a := range old.Aliases {
		if (len(r.snap.Copies(a)) > 0 || anyFollows(children, a, e.URN)) && !slices.Contains(e.New.Aliases, a) {
			kept = append(kept, a)
		}
	}
	return kept
}

// isLive reports that a state is still the live state of its URN, and stays.
// A state that is marked for deletion or pending its replacement is about to go, although it is still live by URN.
func (r *Run) isLive(u urn.URN, k Key) bool {
	live := r.snap.Live(u)
	return live != nil && live.Key == k && !live.PendingReplacement && r.deletionOf[k] == nil
}

// repeatAnswer answers an entry as the same goal was answered in an earlier epoch, and does nothing else: no event, no
// count, no change. Only the claim of a former name is restored, because aliases of children follow from it.
func (r *Run) repeatAnswer(e *entry, f *finished) {
	state := r.snap.Get(f.Key)
	e.Old, e.New, e.Kind = f.Key, *state, f.Kind
	if len(state.Aliases) > 0 && r.snap.Current(state.Aliases[0]) == e.URN { // renamed in this update
		r.claim(e.URN, state.Aliases[0])
	}
	r.finish(e, r.success(e, f.Stables))
}
