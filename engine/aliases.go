package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// predecessor is what an entry continues, or why it cannot tell yet.
type predecessor struct {
	key  Key     // of the stored state; "" when the resource is new
	name urn.URN // that it was stored under
	// wait: it is being deleted before its replacement, or an earlier start of the program works on it.
	wait      bool
	undecided bool   // an attempt to create it is undecided
	conflict  string // the error of an entry that claims what another one does; "" when there is none
}

// predecessor finds the stored state that an entry continues, by its URN or else by its aliases in order. The first
// name that has a live state decides. It changes nothing: continueOld claims what was found.
func (r *Run) predecessor(e *entry) predecessor {
	if by := r.marked(e.URN).ClaimedBy; by != "" && by != e.URN {
		return predecessor{conflict: fmt.Sprintf("%s is also an alias of %s; remove the alias or rename one of them",
			e.URN, by)}
	}
	names := append([]urn.URN{e.URN}, r.aliasesOf(e.URN, e.Reg)...)
	for _, name := range names {
		by, old := r.marked(name).ClaimedBy, r.snap.Live(name)
		switch {
		case r.marked(name).Undecided:
			return predecessor{undecided: true}
		case name != e.URN && r.stepOf(name) != nil:
			return predecessor{wait: true}
		case name != e.URN && by != "" && by != e.URN:
			return predecessor{conflict: fmt.Sprintf("%s and %s both claim to be what was %s; remove the alias from "+
				"one of them", e.URN, by, name)}
		case old == nil:
			continue
		case r.deletionOf[old.Key] != nil:
			return predecessor{wait: true}
		case name != e.URN && r.byURN[name] != nil:
			return predecessor{conflict: fmt.Sprintf("%s claims to be what was %s, which the program also registers",
				e.URN, name)}
		}
		return predecessor{key: old.Key, name: name}
	}
	return predecessor{}
}

// continueOld makes an entry start from what it continues.
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
// state is recorded under its new name, not before: references must never name what is not there.
func (r *Run) claim(u, old urn.URN) {
	r.mark(old).ClaimedBy = u
	r.mark(u).Claims = old
}

// aliasesOf returns every other name that a resource may have been stored under: its own aliases, then those that
// follow from its parent's.
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
			add(r.inherited(typeOf(a), NameOf(a), g.Parent, parentOld))
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
	if old := r.marked(parent).Claims; old != "" {
		return []urn.URN{old}
	}
	if e := r.byURN[parent]; e != nil && e.Old == "" && e.Stage == stageDone && e.Result != ResultSuccess {
		return r.aliasesOf(e.URN, e.Reg)
	}
	live := r.snap.Live(parent)
	if live == nil || len(live.Aliases) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(live.Aliases), func(a urn.URN) bool {
		return r.byURN[a] != nil ||
			!r.parented(a, parent)
	})
}

// parented reports that a child of a resource is still stored under a name that follows from a former name of its
// parent.
func (r *Run) parented(former, parent urn.URN) bool {
	found := false
	r.snap.All(func(s *State) {
		found = found || !s.Delete && s.Parent != "" && r.current(s.Parent) == parent && follows(s.URN, former, parent)
	})
	return found
}

// follows reports that the URN of a child follows from its parent's former name, and not from the one of now.
func follows(child, former, now urn.URN) bool {
	if qualifiedType(former) != qualifiedType(now) {
		return strings.HasPrefix(string(qualifiedType(child)), string(qualifiedType(former))+urn.TypeDelimiter)
	}
	return strings.HasPrefix(NameOf(child), NameOf(former)) && !strings.HasPrefix(NameOf(child), NameOf(now))
}

// collapse makes a URN of an alias; parts that it leaves out are those of the registration.
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

// current is what a stored URN is called in this epoch.
func (r *Run) current(u urn.URN) urn.URN {
	u = r.snap.current(u)
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
func (r *Run) inherited(typ tokens.Type, name string, parent, parentOld urn.URN) urn.URN {
	if rest, ok := strings.CutPrefix(name, NameOf(parent)); ok {
		name = NameOf(parentOld) + rest
	}
	return urn.New(tokens.QName(r.goal.Stack), tokens.PackageName(r.goal.Project), parentType(parentOld), typ, name)
}
