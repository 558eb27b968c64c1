package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// predecessor is what an entry continues, or why that is not known yet. At most one of key, wait, undecided and
// conflict is set; with none of them the resource is new.
type predecessor struct {
	key  Key     // of the stored state; "" when the resource is new
	name urn.URN // that it was stored under
	// wait: it is being deleted before its replacement, or an earlier start of the program works on it.
	wait      bool
	undecided bool   // an attempt to create it is undecided
	conflict  string // the error of an entry that claims what another one does; "" when there is none
}

// predecessor finds the stored state that an entry continues, by its URN or else by its aliases in order. The first
// name that has a live state decides; a copy that waits for its deletion is nobody's predecessor. It changes nothing:
// continueOld claims what was found.
//
// Must be called only when everything that the entry refers to is done: the aliases of a child depend on the name by
// which its parent was found.
func (r *Run) predecessor(e *entry) predecessor {
	if by := r.marked(e.URN).ClaimedBy; by != "" && by != e.URN {
		return predecessor{conflict: fmt.Sprintf("%s is also an alias of %s; remove the alias or rename one of them",
			e.URN, by)}
	}
	names := append([]urn.URN{e.URN}, r.aliasesOf(e.URN, e.Reg)...)
	for _, name := range names {
		by, old := r.marked(name).ClaimedBy, r.snap.Live(name)
		switch {
		// The create may have made a resource that no state describes. Another create could make a duplicate.
		case r.marked(name).Undecided:
			return predecessor{undecided: true}
		// Its step, of this epoch or of an earlier one, decides what is stored under the name. A step of the entry's own URN
		// has been handled by attach.
		case name != e.URN && r.stepOf(name) != nil:
			return predecessor{wait: true}
		case name != e.URN && by != "" && by != e.URN:
			return predecessor{conflict: fmt.Sprintf("%s and %s both claim to be what was %s; remove the alias from "+
				"one of them", e.URN, by, name)}
		case old == nil:
			continue
		// A cascade deletes it. The state stays, pending its replacement, and the entry continues it then.
		case r.deletionOf[old.Key] != nil:
			return predecessor{wait: true}
		// The program gave the former name to another registration, so the state is that one's.
		case name != e.URN && r.precedes(r.byURN[name], e):
			return predecessor{conflict: fmt.Sprintf("%s claims to be what was %s, which the program also registers",
				e.URN, name)}
		}
		return predecessor{key: old.Key, name: name}
	}
	return predecessor{}
}

// precedes reports that an entry was registered or decided before another one. What is registered later must not count,
// so that the same is decided whether it has arrived already or not.
func (r *Run) precedes(other, e *entry) bool {
	return other != nil && (other.Order < e.Order || other.Stage != stageHeld)
}

// continueOld makes an entry start from what it continues. From here on no other entry of this epoch may continue the
// same state: a second one that has it as an alias fails with a conflict.
func (r *Run) continueOld(e *entry, p predecessor) {
	if p.key == "" {
		return
	}
	e.Old = p.key
	if p.name != e.URN {
		r.claim(e.URN, p.name)
	}
}

// claim records that a URN continues what had another name, so that no other entry can. The snapshot follows when the
// state is recorded under its new name, not before: references must never name what is not there. A claim holds for one
// epoch; repeatAnswer and attach restore it in the next one.
func (r *Run) claim(u, old urn.URN) {
	r.mark(old).ClaimedBy = u
	r.mark(u).Claims = old
}

// aliasesOf returns every other name that a resource may have been stored under: its own aliases, then those that
// follow from its parent's.
//
// As in Pulumi, a child inherits the aliases of its parent: each former name of the parent is combined with the child's
// own name and type, and with each of the child's own aliases. The order is fixed, because the first match decides: own
// aliases as declared, then the inherited ones.
func (r *Run) aliasesOf(u urn.URN, g Registration) []urn.URN {
	var out []urn.URN
	add := func(a urn.URN) {
		if a != u && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	own := make([]urn.URN, len(g.Aliases))
	for i, a := range g.Aliases {
		own[i] = r.collapse(a, g)
		add(own[i])
	}
	for _, parentOld := range r.formerNames(g.Parent) {
		add(r.inherited(g.Type, g.Name, g.Parent, parentOld))
		for _, a := range own {
			add(r.inherited(snapshot.TypeOf(a), snapshot.NameOf(a), g.Parent, parentOld))
		}
	}
	return out
}

// formerNames returns the names that the children of a resource may have been stored under: the one that it was found
// by in this update, or those that it still has because an earlier update ended before all of its children were
// registered. Of a resource that failed before it was found, every alias counts.
func (r *Run) formerNames(parent urn.URN) []urn.URN {
	if parent == "" {
		return nil
	}
	// Found by an alias in this epoch: only that name can be in the names of its children.
	if old := r.marked(parent).Claims; old != "" {
		return []urn.URN{old}
	}
	// It failed and continues no stored state. It may have failed before one was looked for, so every alias counts.
	if e := r.byURN[parent]; e != nil && e.Old == "" && e.Stage == stageDone && e.Result != ResultSuccess {
		return r.aliasesOf(e.URN, e.Reg)
	}
	// Stored under its present name already, but children may still have names that follow from former ones. A former name
	// that the program has given to another registration does not count: its children are that one's.
	live := r.snap.Live(parent)
	if live == nil || len(live.Aliases) == 0 {
		return nil
	}
	children := r.storedChildren(parent)
	return slices.DeleteFunc(slices.Clone(live.Aliases), func(former urn.URN) bool {
		return r.byURN[former] != nil || !anyFollows(children, former, parent)
	})
}

// storedChildren returns the URNs that the children of a resource are stored under. It visits the whole snapshot, so
// callers ask only about a state that has aliases, and once for all of them.
func (r *Run) storedChildren(parent urn.URN) []urn.URN {
	var children []urn.URN
	r.snap.All(func(s *State) {
		if !s.Delete && s.Parent != "" && r.current(s.Parent) == parent {
			children = append(children, s.URN)
		}
	})
	return children
}

// anyFollows reports that one of the children of a resource is still stored under a name that follows from a former
// name of it.
func anyFollows(children []urn.URN, former, parent urn.URN) bool {
	return slices.ContainsFunc(children, func(child urn.URN) bool { return snapshot.Follows(child, former, parent) })
}

// collapse makes a URN of an alias; parts that it leaves out are those of the registration. A parent that the alias
// names is taken by the name under which it was stored, since that one is in the stored URN; NoParent overrides Parent.
func (r *Run) collapse(a Alias, g Registration) urn.URN {
	if a.URN != "" {
		return a.URN
	}
	name, typ := or(a.Name, g.Name), or(a.Type, string(g.Type))
	stack, project := or(a.Stack, r.goal.Stack), or(a.Project, r.goal.Project)
	parent := a.Parent
	if parent == "" {
		parent = g.Parent
	} else if old := r.marked(parent).Claims; old != "" {
		parent = old
	}
	if a.NoParent {
		parent = ""
	}
	return urn.New(tokens.QName(stack), tokens.PackageName(project), parentType(parent), tokens.Type(typ), name)
}

// current is what a stored URN is called in this epoch. The renames in the snapshot come first: they are those of
// states that are recorded under their new names. A claim is a rename that has not been recorded yet.
func (r *Run) current(u urn.URN) urn.URN {
	u = r.snap.Current(u)
	if to := r.marked(u).ClaimedBy; to != "" {
		return to
	}
	return u
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// inherited is what a child was called when its parent had its old name. A child whose name begins with its parent's
// is taken to have been named after it.
// Pulumi makes the same assumption, so states that it has stored are found.
func (r *Run) inherited(typ tokens.Type, name string, parent, parentOld urn.URN) urn.URN {
	if rest, ok := strings.CutPrefix(name, snapshot.NameOf(parent)); ok {
		name = snapshot.NameOf(parentOld) + rest
	}
	return urn.New(tokens.QName(r.goal.Stack), tokens.PackageName(r.goal.Project), parentType(parentOld), typ, name)
}

// renameUnregistered renames, when the update ends, what is stored below a resource whose type or parent has changed in
// it, and was not registered itself: the types of its parents are in the URN of a child. As in Pulumi, the next update
// finds it by that name, whatever the program says then about the former one. A name that is stored already is left to
// whom it belongs.
func (r *Run) renameUnregistered() {
	names, taken := map[urn.URN]urn.URN{}, map[urn.URN]bool{}
	var renames []Delta
	r.snap.All(func(s *State) {
		parent := r.snap.Current(s.Parent)
		if to, renamed := names[parent]; renamed {
			parent = to
		}
		if s.Delete || s.IsView() || parent == s.Parent {
			return
		}
		name := urn.New(tokens.QName(r.goal.Stack), tokens.PackageName(r.goal.Project), parentType(parent), s.Type,
			snapshot.NameOf(s.URN))
		if name != s.URN && r.snap.Live(name) == nil && !taken[name] {
			names[s.URN], taken[name] = name, true
			renames = append(renames, Delta{Kind: DeltaAlias, From: s.URN, To: name})
		}
	})
	for _, d := range renames {
		r.change(d)
	}
}
