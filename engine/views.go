package engine

import (
	"cmp"
	"slices"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// A view is a state that describes a part of what another resource, its owner, manages: ViewOf names the owner, and the
// view stands behind it. No provider is called about a view. The provider of the owner publishes steps of its views
// while it makes a step of the owner; they are recorded with the outcome of that step. So nothing decides about a view:
//
//   - No program registers it. It is neither undeclared nor refreshed, and keeps nothing that it refers to.
//   - It waits for its deletion if its owner does, and leaves the snapshot with its owner at the latest.
//   - A step that is made again publishes again. What counts is what the attempt has published whose outcome counts.

// ViewStep is a step of a view, as the provider of its owner has published it. Old names the view before the step, New
// describes it after the step. Within a refresh, Kind is what the refresh has found: same, update or delete.
type ViewStep struct {
	Kind StepKind `json:"kind"`
	Old  *View    `json:"old,omitempty"`
	New  *View    `json:"new,omitempty"`
	Diff *Diff    `json:"diff,omitempty"`
	// Error says why the step failed. If Partial is set, the view is as New describes it nevertheless.
	Error   string `json:"error,omitempty"`
	Partial bool   `json:"partial,omitempty"`
}

// ViewError returns the error of the first step that failed; "" if none did.
func ViewError(steps []ViewStep) string {
	for _, step := range steps {
		if step.Error != "" {
			return step.Error
		}
	}
	return ""
}

// View describes a view in the terms of its provider. Its parent is the owner, or another view of it.
type View struct {
	Type       tokens.Type `json:"type"`
	Name       string      `json:"name"`
	ParentType tokens.Type `json:"parentType,omitempty"`
	ParentName string      `json:"parentName,omitempty"`
	Inputs     Bag         `json:"inputs"`
	Outputs    Bag         `json:"outputs"`
}

// viewKinds are the steps of views that count in the summary; the others are halves of a replacement.
var viewKinds = []StepKind{
	StepSame, StepCreate, StepUpdate, StepDelete, StepReplace, StepRead, StepReadDiscard, StepImport,
}

// viewsOf returns the views of a stored resource in snapshot order. Those of a copy that waits for its deletion stand
// behind it, and before the next copy of its URN.
func (r *Run) viewsOf(owner Key) []Key {
	s := r.snap.Get(owner)
	if !r.snap.HasViews() || s == nil || s.IsView() {
		return nil
	}
	from, until := r.snap.Position(owner), -1
	for _, k := range r.snap.Copies(s.URN) {
		if at := r.snap.Position(k); s.Delete && r.snap.Get(k).Delete && at > from && (until < 0 || at < until) {
			until = at
		}
	}
	var out []Key
	for _, name := range append([]urn.URN{s.URN}, s.Aliases...) {
		for _, k := range r.snap.Views(name) {
			at := r.snap.Position(k)
			if v := r.snap.Get(k); v != nil && v.Delete == s.Delete && at > from && (until < 0 || at < until) {
				out = append(out, k)
			}
		}
	}
	slices.SortFunc(out, func(a, b Key) int { return cmp.Compare(r.snap.Position(a), r.snap.Position(b)) })
	return slices.Compact(out)
}

// viewStates returns the views of a stored resource for a command. The command refers to the values that the base has:
// there may be very many.
func (r *Run) viewStates(owner Key) []State {
	var out []State
	for _, k := range r.viewsOf(owner) {
		view := *r.reference(k)
		if _, stored := k.Base(); stored && !r.snap.Changed(k) {
			for _, part := range snapshot.Parts {
				if bag := view.Bag(part); bag.Inline != nil {
					bag.Inline, bag.Ref = nil, k.Ref(part)
				}
			}
		}
		out = append(out, view)
	}
	return out
}

// recordViews records and shows the steps that an operation's provider has published, in their order. What is published
// about a resource that is not in the snapshot under the key, because it was not made, is dropped.
func (r *Run) recordViews(op *operation, owner Key, steps []ViewStep) {
	if len(steps) == 0 || r.snap.Get(owner) == nil {
		return
	}
	p := publication{
		run: r, owner: owner, refresh: op.Step.Kind == StepRefresh, views: map[viewName]Key{}, made: map[Key]bool{},
	}
	for _, k := range r.viewsOf(owner) {
		v := r.snap.Get(k)
		p.views[viewName{v.Type, snapshot.NameOf(v.URN)}] = k
	}
	for _, step := range steps {
		p.record(step)
	}
}

// publication is recordViews at work.
type publication struct {
	run     *Run
	owner   Key
	refresh bool
	views   map[viewName]Key // of the owner
	made    map[Key]bool     // those that an earlier step of the publication has put
}

// viewName tells the views of an owner apart, as its provider does.
type viewName struct {
	typ  tokens.Type
	name string
}

// record carries one step out. A replacement publishes a create, a delete and the replacement as a whole, in any order:
// the create takes the place of the old view at once, so a delete after it has nothing to do, and the whole changes
// nothing.
func (p *publication) record(step ViewStep) {
	r := p.run
	op := r.newOp()
	shown := Emit{Op: op, Step: step.Kind, Diff: step.Diff}
	old := p.find(step.Old)
	if old != nil {
		before := *old
		shown.Old, shown.URN, shown.Type = &before, before.URN, before.Type
	}
	if step.New != nil {
		next := p.state(*step.New, op)
		shown.New, shown.URN, shown.Type = &next, next.URN, next.Type
	}
	if shown.URN == "" { // what was to go is gone, or was never there
		return
	}
	if step.Error == "" || step.Partial {
		if why := p.apply(step, shown.Old, shown.New); why != "" {
			step.Error = why
		}
	}
	p.show(step, shown)
}

// apply changes the snapshot by a step that has had its effect. It returns why it cannot.
func (p *publication) apply(step ViewStep, old, next *State) string {
	switch {
	case step.Kind == StepReplace:
	case next != nil:
		if there := p.run.snap.Live(next.URN); there != nil && p.run.current(there.ViewOf) != next.ViewOf {
			return "its provider publishes a view under the URN of another resource"
		}
		p.put(next)
		if old != nil && old.URN != next.URN {
			p.remove(old)
		}
	case old != nil && !(p.made[old.Key] && step.Kind == StepDeleteReplaced):
		p.remove(old)
	}
	return ""
}

// put stores a view: in the place of the one with its URN in a refresh, and if that is in the new list already;
// otherwise at its end, behind everything that it refers to.
func (p *publication) put(next *State) {
	r := p.run
	put := Delta{Kind: DeltaPut, State: next}
	put.Op, _ = next.Key.Op()
	there, moved := r.snap.Live(next.URN), false
	if there != nil {
		next.Created, next.Modified = there.Created, there.Modified
		put.Removes = []Key{there.Key}
		_, moved = r.snap.InNew(there.Key)
	}
	// A refresh moves nothing.
	if there != nil && (p.refresh || moved) {
		next.Key = there.Key
		put = Delta{Kind: DeltaSet, State: next}
	} else {
		r.keep(p.owner)
		r.keepReferences(*next)
	}
	r.change(put)
	p.views[viewName{next.Type, snapshot.NameOf(next.URN)}], p.made[next.Key] = next.Key, true
}

// remove removes a view. Views below it get its parent.
func (p *publication) remove(old *State) {
	r := p.run
	r.change(Delta{Kind: DeltaRemove, Removes: []Key{old.Key}})
	delete(p.views, viewName{old.Type, snapshot.NameOf(old.URN)})
	if slices.ContainsFunc(r.snap.Views(old.ViewOf), func(k Key) bool { return r.snap.Get(k).Parent == old.URN }) {
		r.dropReferences(map[urn.URN]urn.URN{r.current(old.URN): r.current(old.Parent)})
	}
}

// find returns the view of the owner that a provider means; nil when there is none.
func (p *publication) find(v *View) *State {
	if v == nil {
		return nil
	}
	return p.run.snap.Get(p.views[viewName{v.Type, v.Name}])
}

// state returns the state that a view describes. A view that is there keeps its URN; a new one is named after its
// parent, as any child is.
func (p *publication) state(v View, op int) State {
	r := p.run
	owner := r.snap.Get(p.owner)
	next := State{
		Key: snapshot.OpKey(op), Type: v.Type, ViewOf: owner.URN, Parent: owner.URN, Delete: owner.Delete, Inputs: v.Inputs,
		Outputs: v.Outputs,
	}
	if parent := p.find(&View{Type: v.ParentType, Name: v.ParentName}); parent != nil {
		next.Parent = parent.URN
	}
	next.URN = r.urnOf(Registration{Type: v.Type, Name: v.Name, Parent: next.Parent})
	if there := p.find(&v); there != nil {
		next.URN, next.Parent = there.URN, r.current(there.Parent)
	}
	return next
}

// show shows a step and counts it. A step that failed fails the update at its end.
func (p *publication) show(step ViewStep, shown Emit) {
	r := p.run
	if p.refresh {
		shown.Step = StepRefresh
	}
	shown.Kind = EmitPre
	r.emit(shown)
	if step.Error != "" {
		shown.Kind, shown.Message = EmitFailed, step.Error
		r.emit(shown)
		r.diagnose("error", shown.URN, "%s", step.Error)
		r.noteError(step.Error)
		return
	}
	shown.Kind = EmitOutputs
	r.emit(shown)
	switch {
	case p.refresh:
		r.countRefresh(step.Kind, shown.URN)
	case slices.Contains(viewKinds, step.Kind):
		r.count(step.Kind, shown.URN)
	}
}

// keepViews keeps the views of an owner that is kept without a step, behind it.
func (r *Run) keepViews(owner Key) {
	for _, k := range r.viewsOf(owner) {
		if i, stays := r.snap.InBase(k); stays {
			r.change(Delta{Kind: DeltaKeep, First: i, Count: 1})
		}
		view := *r.snap.Get(k)
		r.count(StepSame, view.URN)
		r.emitSame(r.newOp(), &entry{URN: view.URN, New: view}, nil)
	}
}

// deleteViewsLater makes the views of a copy that waits for its deletion wait, too. It is called before the copy does.
func (r *Run) deleteViewsLater(owner Key) {
	for _, k := range r.viewsOf(owner) {
		waits := *r.snap.Get(k)
		waits.Delete = true
		r.change(Delta{Kind: DeltaSet, State: &waits})
	}
}

// removeViews removes the views of an owner that is deleted, from the last to the first, as far as its provider has not
// said that they are. In a preview, and if no provider is called, nobody has.
func (r *Run) removeViews(owner Key, kind StepKind) {
	views := r.viewsOf(owner)
	counted := kind
	if s := r.snap.Get(owner); s != nil && s.RetainOnDelete {
		counted = CountRetained
	}
	for _, k := range slices.Backward(views) {
		view := *r.snap.Get(k)
		shown := Emit{Kind: EmitPre, Op: r.newOp(), Step: kind, URN: view.URN, Type: view.Type, Old: &view}
		r.emit(shown)
		r.change(Delta{Kind: DeltaRemove, Removes: []Key{k}})
		shown.Kind = EmitOutputs
		r.emit(shown)
		if kind == StepDelete {
			r.count(counted, view.URN)
		}
	}
}
