package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Two resources that need each other cannot both be registered with all of their inputs. A binding is a third one,
// registered when both exist: it adds inputs to the one that was registered first, which is then reconciled once more.
//
//	a            registered and made, with its own inputs
//	b            uses a
//	binding      of a, with inputs that use b: a is planned once more, and updated
//
// A binding has no provider. Its stored state remembers what it adds, so that in the next update a is planned with that
// from the beginning, and nothing is left to do. A binding that is not declared any more, or of another resource now,
// has its former resource reconciled without it when the program has ended.

// BindingType is the type of a binding. Its property "resource" depends on one resource, whose inputs it adds to.
const BindingType tokens.Type = "deployctl:index:Binding"

// Bound is the bag of a binding. Registered: the program has registered it, so that it must not add what another one
// adds.
type Bound struct {
	Bag
	Registered bool `json:"registered,omitempty"`
}

// boundProperty is the property of a binding that names the resource.
const boundProperty = "resource"

// again marks an entry that the program did not register: the resource of another entry is reconciled once more.
// Binding is why; nil if it is because of bindings that are not there any more.
type again struct {
	Binding *entry `json:",omitempty"`
}

// boundResource returns the resource that a binding with these dependencies adds inputs to; "" if it is not one.
func boundResource(properties []PropertyDependency) urn.URN {
	for _, p := range properties {
		if p.Property == boundProperty && len(p.URNs) == 1 {
			return p.URNs[0]
		}
	}
	return ""
}

// goal returns the digest of all that an entry asks for: what the program registered and what bindings add.
func (e *entry) goal() string {
	digest := e.Reg.Digest
	for _, b := range e.Reg.Bound {
		digest += "+" + b.Digest
	}
	return digest
}

// noteBinding makes a binding that is stored findable by the resource that it adds inputs to.
func (r *Run) noteBinding(s *State) {
	if s.Type != BindingType {
		return
	}
	on := r.snap.Current(boundResource(s.PropertyDependencies))
	if !slices.Contains(r.bindings[on], s.URN) {
		r.bindings[on] = append(r.bindings[on], s.URN)
	}
}

// bind gives an entry what the bindings of its resource add: those that are stored, and the one for which it is
// reconciled again. What was stored under a former name is found once the entry has continued it.
//
// What the program has registered counts for more than what is only stored, which may not be declared any more; so it
// comes last. Of each kind the order is that of the names, whatever led to it.
func (r *Run) bind(e *entry) {
	names := []urn.URN{e.URN}
	if old := r.snap.Get(e.Old); old != nil && old.URN != e.URN {
		names = append(names, old.URN)
	}
	var by *entry
	unbinds := false // what the program registers may arrive together with its end, and is decided without looking at that
	if e.Again != nil {
		by, unbinds = e.Again.Binding, e.Again.Binding == nil
	}
	found := map[urn.URN]Bag{}
	for _, name := range names {
		for _, u := range r.bindings[name] {
			s := r.snap.Live(r.current(u))
			if s == nil { // it is not recorded under its new name yet
				s = r.snap.Live(u)
			}
			if s != nil && r.current(boundResource(s.PropertyDependencies)) == e.URN && !(unbinds && r.dropsBinding(s)) {
				found[r.current(u)] = s.Inputs
			}
		}
	}
	if by != nil {
		found[by.URN] = by.Reg.Inputs
	}
	var stored, registered []Bound
	each(found, func(u urn.URN, b Bag) {
		switch now := r.registeredFor(u, e); {
		case now == nil:
			stored = append(stored, Bound{Bag: b})
		case boundResource(now.Reg.PropertyDependencies) == e.URN: // otherwise it is another resource's now
			registered = append(registered, Bound{b, true})
		}
	})
	e.Reg.Bound = append(stored, registered...)
}

// registeredFor returns the registration of a binding, if it came before its resource is reconciled again for e: up to
// the binding that e is for. What has arrived since makes no difference.
func (r *Run) registeredFor(binding urn.URN, e *entry) *entry {
	b := r.byURN[binding]
	if b != nil && e.Again != nil && (e.Again.Binding == nil || b.Order <= e.Again.Binding.Order) {
		return b
	}
	return nil
}

// dropsBinding reports that the program, which has ended, has not registered a binding.
func (r *Run) dropsBinding(s *State) bool {
	return !r.registered(s.URN) && !r.wants(s.URN) && (!s.Protect || r.goal.IgnoreProtect) && r.mayChange(s) &&
		r.unplanned(s.URN, StepDelete) == ""
}

// lastOf returns the entry that has reconciled a resource last in this epoch, or still does; nil if there is none.
func (r *Run) lastOf(u urn.URN) *entry {
	if e := r.repeated[u]; e != nil {
		return e
	}
	return r.byURN[u]
}

// decideBinding decides about a binding. If its resource was not reconciled with what the binding adds, the binding
// stays held until that is done. A preview shows that only of a resource that exists and has not changed otherwise:
// every other one has a step anyway.
func (r *Run) decideBinding(e *entry, old *State) {
	target := boundResource(e.Reg.PropertyDependencies)
	on := r.lastOf(target)
	switch {
	case on == nil || !on.New.Custom || on.Read || snapshot.IsProvider(on.New.Type):
		r.reject(e, "%s binds no resource that this stack manages: its property %q must be the urn of one that the "+
			"program registers before, which is not a component, a provider or the result of a read", e.URN, boundProperty)
	case r.goal.Kind != KindUp, !r.tookPart(on), on.boundTo(e.Reg.Inputs), r.goal.DryRun && on.Kind != StepSame:
		r.decideComponent(e, old)
	default:
		if e.Kind = StepCreate; old != nil {
			e.Kind = StepUpdate
		}
		if r.departs(e) {
			return
		}
		e.Kind = ""
		waiting := *e
		r.reconcileAgain(on, &again{Binding: &waiting}, e.Seq)
		r.become(e, stageHeld, 0)
	}
}

// boundTo reports that an entry's resource gets what a binding adds.
func (e *entry) boundTo(inputs Bag) bool {
	return slices.ContainsFunc(e.Reg.Bound, func(b Bound) bool { return b.Same(inputs) })
}

// reconcileAgain registers the resource of an entry, which has ended well, once more. It is numbered like the binding
// that asked for it, whose plan a replica makes for it.
func (r *Run) reconcileAgain(on *entry, why *again, seq int) {
	e := &entry{Epoch: r.Epoch, Seq: seq, Order: len(r.Entries), URN: on.URN, Reg: on.Reg, Again: why}
	if why.Binding != nil {
		e.Ahead = why.Binding.Ahead
	}
	if in := on.Reg.Inputs; !in.Empty() && in.Inline == nil && in.Ref == "" { // dropped when the run was suspended
		e.Reg.Inputs = r.snap.Live(on.URN).Inputs
	}
	r.Entries = append(r.Entries, e)
	r.repeated[e.URN] = e
	r.become(e, stageHeld, 0)
}

// awaitsResource reports that a binding waits until its resource is reconciled again.
func (r *Run) awaitsResource(e *entry) bool {
	on := r.repeated[boundResource(e.Reg.PropertyDependencies)]
	if e.Reg.Type != BindingType || on == nil || on.Stage == stageDone {
		return false
	}
	e.blockedOn = on
	return true
}

// bindingFails reports that a binding's resource could not be reconciled with it, which fails the binding, too.
func (r *Run) bindingFails(e *entry) bool {
	on := r.repeated[boundResource(e.Reg.PropertyDependencies)]
	return e.Reg.Type == BindingType && on != nil && on.Result != ResultSuccess
}

// refuseReplacement fails what is reconciled again if that would replace it: the resources that it is bound to were
// made for the one that is there.
func (r *Run) refuseReplacement(e *entry) bool {
	if e.Again == nil {
		return false
	}
	which := "a binding that is not declared any more"
	if e.Again.Binding != nil {
		which = "the binding " + e.Again.Binding.Reg.Name
	}
	r.reject(e, "%s would have to be replaced for %s%s; inputs that replace a resource cannot be bound", e.URN, which,
		replacing(e.Plan.Diff))
	return true
}

// bound records the binding for which a resource was reconciled again, together with the resource: an update that ends
// between the two would otherwise take back what the binding adds. The binding's own entry then finds it done.
func (r *Run) bound(e *entry) {
	if e.Again == nil || e.Again.Binding == nil {
		return
	}
	b := *e.Again.Binding
	old := r.snap.Get(b.Old)
	if old == nil {
		old = r.snap.Live(b.URN)
	}
	b.Old, b.Kind = "", StepCreate
	if old != nil {
		b.Old, b.Kind, b.New.Outputs = old.Key, StepUpdate, old.Outputs
	}
	op := r.newOp()
	r.emitStep(EmitPre, op, &b)
	b.stamp(b.At)
	r.record(&b, op)
	r.emitStep(EmitOutputs, op, &b)
	r.count(b.Kind, b.URN)
	r.mark(b.URN).Done = &finished{Digest: b.goal(), Key: b.New.Key, Kind: b.Kind}
}

// mostNamed bounds the names in a sentence.
const mostNamed = 3

// warnOfMoved says that a binding has changed outputs of its resource which others may have been made from. The next
// update brings these up to date, which may change in turn what is bound.
func (r *Run) warnOfMoved(e *entry, outputs []string) {
	if e.Again == nil || e.Again.Binding == nil || len(outputs) == 0 {
		return
	}
	var users []string
	for _, other := range r.Entries {
		uses := func(p PropertyDependency) bool { return slices.Contains(p.URNs, e.URN) }
		if other.New.Type != BindingType && slices.ContainsFunc(other.Reg.PropertyDependencies, uses) {
			users = append(users, other.Reg.Name)
		}
	}
	if len(users) == 0 {
		return
	}
	r.diagnose("info", e.URN, "the binding %s has changed outputs of %s (%s), and what uses it may have been made from "+
		"the former ones: %s. Then the next update changes that; if it changes what is bound, too, the two never come "+
		"to rest",
		e.Again.Binding.Reg.Name, e.Reg.Name, few(outputs), few(users))
}

// few joins the first of some names.
func few(names []string) string {
	text := strings.Join(names[:min(len(names), mostNamed)], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// unbind reconciles every resource again from which a binding was taken since; it reports whether there is one. It is
// called when the program has ended and everything that it registered is done.
func (r *Run) unbind() bool {
	found := false
	for _, e := range slices.Clone(r.Entries) {
		on := r.lastOf(e.URN)
		switch {
		case on.Stage == stageDone && on.Result != ResultSuccess:
			r.keepBindings(on.URN)
			continue
		case on.Stage != stageDone, len(on.Reg.Bound) == 0, r.goal.DryRun && on.Kind != StepSame, !r.tookPart(on):
			continue
		}
		next := &entry{URN: on.URN, Again: &again{}}
		r.bind(next)
		if slices.ContainsFunc(on.Reg.Bound, func(b Bound) bool { return !next.boundTo(b.Bag) }) {
			found = true
			r.reconcileAgain(on, &again{}, 0)
		}
	}
	return found
}

// keepBindings keeps the bindings of a resource that failed, because it may still have what they add.
func (r *Run) keepBindings(u urn.URN) {
	for _, b := range r.bindings[u] {
		if s := r.snap.Live(r.current(b)); s != nil && r.dropsBinding(s) {
			r.mark(s.URN).Wanted = true
		}
	}
}

// tookPart reports that an entry is selected, by both of its names if it was left alone under a former one.
func (r *Run) tookPart(on *entry) bool {
	declared := *on
	declared.URN = r.urnOf(on.Reg)
	return r.selected(on) && r.selected(&declared)
}
