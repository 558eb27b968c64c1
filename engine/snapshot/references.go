package snapshot

import (
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// JoinReference makes a provider reference of a provider's URN and id.
func JoinReference(u urn.URN, id string) string { return string(u) + "::" + id }

// SplitReference takes a provider reference apart; the URN is empty when the reference is. The last "::" separates the
// two, because a URN contains that delimiter and the id of a provider does not.
func SplitReference(ref string) (urn.URN, string) {
	i := strings.LastIndex(ref, "::")
	if i < 0 {
		return "", ""
	}
	return urn.URN(ref[:i]), ref[i+2:]
}

// References returns every URN that a state refers to, in a fixed order: parent, provider, dependencies, property
// dependencies, deletedWith, viewOf, replaceWith. A URN may occur more than once.
//
// Every one of them must stand before the state in a snapshot, see Verify. What orders states (dependents,
// markForDeletion, moveDependents, Repair) goes by this list, so a new field of State that names a resource must be
// added here, and to without and rename.
func (s *State) References() []urn.URN {
	out := make([]urn.URN, 0, 2+len(s.Dependencies))
	if s.Parent != "" {
		out = append(out, s.Parent)
	}
	if u, _ := SplitReference(s.Provider); u != "" {
		out = append(out, u)
	}
	out = append(out, s.Dependencies...)
	for _, p := range s.PropertyDependencies {
		out = append(out, p.URNs...)
	}
	if s.DeletedWith != "" {
		out = append(out, s.DeletedWith)
	}
	if s.ViewOf != "" {
		out = append(out, s.ViewOf)
	}
	return append(out, s.ReplaceWith...)
}

// Without returns the state without its references to some URNs. Its provider stays, because the resource could not be
// managed without one. gone is also asked about the empty URN of an unset parent or deletedWith. The receiver's slices
// are not changed: the snapshot shares them.
func (s State) Without(gone func(urn.URN) bool) State {
	if gone(s.Parent) {
		s.Parent = ""
	}
	if gone(s.DeletedWith) {
		s.DeletedWith = ""
	}
	if gone(s.ViewOf) {
		s.ViewOf = ""
	}
	s.Dependencies = slices.DeleteFunc(slices.Clone(s.Dependencies), gone)
	s.ReplaceWith = slices.DeleteFunc(slices.Clone(s.ReplaceWith), gone)
	properties := make([]PropertyDependency, 0, len(s.PropertyDependencies))
	for _, p := range s.PropertyDependencies {
		if p.URNs = slices.DeleteFunc(slices.Clone(p.URNs), gone); len(p.URNs) > 0 {
			properties = append(properties, p)
		}
	}
	s.PropertyDependencies = properties
	return s
}

// mapped returns URNs by other names; nil stays nil.
func mapped(us []urn.URN, name func(urn.URN) urn.URN) []urn.URN {
	out := slices.Clone(us)
	for i, u := range us {
		out[i] = name(u)
	}
	return out
}

// rename gives everything that the state refers to, but its provider, another name. The slices of the receiver are not
// changed: the snapshot shares them.
func (s *State) rename(name func(urn.URN) urn.URN) {
	s.Parent, s.DeletedWith, s.ViewOf = name(s.Parent), name(s.DeletedWith), name(s.ViewOf)
	s.Dependencies, s.ReplaceWith = mapped(s.Dependencies, name), mapped(s.ReplaceWith, name)
	s.PropertyDependencies = slices.Clone(s.PropertyDependencies)
	for i, p := range s.PropertyDependencies {
		s.PropertyDependencies[i].URNs = mapped(p.URNs, name)
	}
}
