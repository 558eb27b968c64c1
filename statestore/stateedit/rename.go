package stateedit

import (
	"fmt"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// rootType is the type of a stack's root resource.
const rootType = "pulumi:pulumi:Stack"

// renamed gives all copies of a resource another name, and corrects every reference to it.
func renamed(states []engine.State, from urn.URN, name string) ([]engine.State, []string, error) {
	to := from.Rename(name)
	switch {
	case from.Type() == rootType:
		return nil, nil, deployments.Errorf(deployments.CodeInvalid,
			"%s is the stack itself: `deployctl stack rename` "+
				"renames it", from)
	case to == from:
		return states, nil, nil
	}
	if slices.ContainsFunc(states, func(s engine.State) bool { return s.URN == to }) {
		return nil, nil, deployments.Errorf(deployments.CodeExists,
			"the state has a resource %s already: choose another "+
				"name", to)
	}
	names := map[urn.URN]urn.URN{from: to}
	out := make([]engine.State, len(states))
	for i, s := range states {
		out[i] = withNames(s, names)
	}
	return out, []string{fmt.Sprintf("rename %s to %s", from, to)}, nil
}

// withNames returns a state with other URNs, in its own and in all that it refers to. The receiver's slices are not
// changed.
func withNames(s engine.State, names map[urn.URN]urn.URN) engine.State {
	name := func(u urn.URN) urn.URN {
		if to, ok := names[u]; ok {
			return to
		}
		return u
	}
	s.URN, s.Parent, s.DeletedWith, s.ViewOf = name(s.URN), name(s.Parent), name(s.DeletedWith), name(s.ViewOf)
	s.Dependencies, s.ReplaceWith = mapped(s.Dependencies, name), mapped(s.ReplaceWith, name)
	if u, id := snapshot.SplitReference(s.Provider); u != "" {
		s.Provider = snapshot.JoinReference(name(u), id)
	}
	s.PropertyDependencies = slices.Clone(s.PropertyDependencies)
	for i, p := range s.PropertyDependencies {
		s.PropertyDependencies[i].URNs = mapped(p.URNs, name)
	}
	return s
}

// mapped returns URNs by other names; nil stays nil.
func mapped(list []urn.URN, name func(urn.URN) urn.URN) []urn.URN {
	out := slices.Clone(list)
	for i, u := range out {
		out[i] = name(u)
	}
	return out
}
