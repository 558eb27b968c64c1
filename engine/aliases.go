package engine

import (
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// claimOld finds the stored state that an entry continues, by its URN or else by its aliases in order. It rejects the
// entry, and answers false, when that state is claimed by two. A state that is being deleted before its replacement, or
// that an earlier start of the program works on, is waited for: the entry stays held, and claims nothing.
func (r *Run) claimOld(e *entry) (claimed bool) {
	if other, claimed := r.Aliased[e.URN]; claimed && other != e.URN {
		r.reject(e, "%s is also an alias of %s; remove the alias or rename one of them", e.URN, other)
		return false
	}
	names := append([]urn.URN{e.URN}, r.aliasesOf(e.URN, e.Reg)...)
	for _, name := range names {
		if r.Doubtful[name] {
			r.diagnose("error", e.URN, "%s may exist already: an attempt to create it is undecided, and must be "+
				"settled first", e.URN)
			r.finish(e, Reply{Result: ResultFail})
			return false
		}
		if name != e.URN && r.stepOf(name) != nil {
			return false
		}
		if by := r.Aliased[name]; name != e.URN && by != "" && by != e.URN {
			r.reject(e, "%s and %s both claim to be what was %s; remove the alias from one of them", e.URN, by, name)
			return false
		}
		old := r.snap.Live(name)
		if old == nil {
			continue
		}
		if r.condemned[old.Key] != nil {
			return false
		}
		if name != e.URN {
			if r.byURN[name] != nil {
				r.reject(e, "%s claims to be what was %s, which the program also registers", e.URN, name)
				return false
			}
			r.claim(e.URN, name)
		}
		e.Old = old.Key
		return true
	}
	return true
}

// claim notes that a URN continues what had another name. The snapshot follows when the state is recorded under its new
// name, not before: references must never name what is not there.
func (r *Run) claim(u, old urn.URN) {
	r.Aliased[old] = u
	r.AliasOf[u] = old
}

// aliasesOf gives every other name that a resource may have been stored under: its own aliases, then those that follow
// from its parent's.
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

// formerNames gives the names that the children of a resource may have been stored under: the one that it was found by
// in this update, or those that it still has because an earlier update ended before all of its children were
// registered. Of a resource that failed before it was found, every alias counts.
func (r *Run) formerNames(parent urn.URN) []urn.URN {
	if parent == "" {
		return nil
	}
	if old, ok := r.AliasOf[parent]; ok {
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
	} else if old, ok := r.AliasOf[parent]; ok {
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
	if to, ok := r.Aliased[u]; ok {
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
