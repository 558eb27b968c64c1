package stateedit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Apply returns the states with an edit applied, and a line for each change; without a change it returns the states as
// they are. It does not change what states refers to. CodeNotFound: there is no such resource. CodeExists: the new name
// is taken. CodeInvalid: the edit would break the state, for example because another resource depends on one that is to
// be deleted.
func Apply(states []engine.State, r deployments.EditRequest) ([]engine.State, []string, error) {
	switch r.Edit {
	case deployments.EditRepair:
		edited, changes := repaired(states)
		return edited, changes, nil
	case deployments.EditEncrypt: // headers have no secrets
		return states, []string{"encrypt secrets with the provider " + r.NewSecrets.Type}, nil
	}
	chosen, err := choose(states, r)
	if err != nil {
		return nil, nil, err
	}
	switch r.Edit {
	case deployments.EditDelete:
		return deleted(states, chosen, r)
	case deployments.EditRename:
		return renamed(states, urn.URN(r.Resources[0]), r.Name)
	}
	edited, changes := marked(states, chosen, r.Edit)
	return edited, changes, nil
}

// set is a set of states, by index.
type set map[int]bool

// choose returns the states that a request names. Of a resource with several copies, edits other than a delete change
// all that the id selects.
func choose(states []engine.State, r deployments.EditRequest) (set, error) {
	chosen := set{}
	if r.All {
		for i, s := range states {
			if r.Edit == deployments.EditDelete || s.Type != rootType {
				chosen[i] = true
			}
		}
		return chosen, nil
	}
	for _, name := range r.Resources {
		var copies []int
		for i, s := range states {
			if string(s.URN) == name && (r.ID == "" || s.ID == r.ID) {
				copies = append(copies, i)
			}
		}
		switch {
		case len(copies) == 0 && r.ID != "":
			return nil, deployments.Errorf(deployments.CodeNotFound, "the state has no resource %s with the id %q",
				name,
				r.ID)
		case len(copies) == 0:
			return nil, deployments.Errorf(deployments.CodeNotFound, "the state has no resource %s", name)
		case len(copies) > 1 && r.Edit == deployments.EditDelete:
			return nil, deployments.Errorf(deployments.CodeInvalid,
				"the state has %d copies of %s, with the ids %s: name "+
					"one with --id", len(copies), name, ids(states, copies))
		}
		for _, i := range copies {
			chosen[i] = true
		}
	}
	return chosen, nil
}

// ids lists the ids of copies, and which of them wait for their deletion.
func ids(states []engine.State, copies []int) string {
	var list []string
	for _, i := range copies {
		text := states[i].ID
		if states[i].Delete {
			text += " (waits for its deletion)"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// marked sets or clears a mark of the chosen states.
func marked(states []engine.State, chosen set, edit deployments.EditKind) ([]engine.State, []string) {
	out := slices.Clone(states)
	var changes []string
	for i := range out {
		s := &out[i]
		mark, to := &s.Protect, edit == deployments.EditProtect
		if edit == deployments.EditTaint || edit == deployments.EditUntaint {
			mark, to = &s.Taint, edit == deployments.EditTaint
			if !s.Custom && to { // only a provider's resource can be replaced
				continue
			}
		}
		if chosen[i] && *mark != to {
			*mark = to
			changes = append(changes, fmt.Sprintf("%s %s", edit, s.URN))
		}
	}
	return out, changes
}

// deleted returns the states without the chosen ones and, with Dependents, without what depends on them.
func deleted(states []engine.State, chosen set, r deployments.EditRequest) ([]engine.State, []string, error) {
	dependents := dependentsOf(states, chosen)
	if len(dependents) > 0 && !r.Dependents {
		return nil, nil, deployments.Errorf(deployments.CodeInvalid,
			"%s cannot be deleted from the state, because %s: "+
				"delete those first, or pass --target-dependents to delete them, too", named(states, chosen),
			depend(named(states, dependents), len(dependents)))
	}
	for i := range dependents {
		chosen[i] = true
	}
	protected := set{}
	var out []engine.State
	var changes []string
	for i, s := range states {
		if !chosen[i] {
			out = append(out, s)
			continue
		}
		if s.Protect {
			protected[i] = true
		}
		changes = append(changes, "delete "+string(s.URN))
	}
	if len(protected) > 0 && !r.Force {
		return nil, nil, deployments.Errorf(deployments.CodeInvalid, "%s cannot be deleted from the state, because of "+
			"its protection: `deployctl state unprotect` it first, or pass --force", named(states, protected))
	}
	return out, changes, nil
}

func depend(names string, n int) string {
	if n == 1 {
		return names + " depends on it"
	}
	return names + " depend on it"
}

// dependentsOf returns the states that could not stay without the given ones: what they refer to would be missing, or
// would stand after them only. It follows dependents of dependents.
func dependentsOf(states []engine.State, gone set) set {
	dependents := set{}
	left := make(map[urn.URN]bool, len(states))
	providers := map[string]bool{}
	missing := map[urn.URN]bool{} // URNs of which a copy goes
	for i := range states {
		s := &states[i]
		provider, _ := snapshot.SplitReference(s.Provider)
		lost := func(u urn.URN) bool { return u != provider && missing[u] && !left[u] }
		without := missing[provider] && s.Provider != "" && !providers[s.Provider]
		if !gone[i] && (without || slices.ContainsFunc(s.References(), lost)) {
			dependents[i] = true
		}
		if gone[i] || dependents[i] {
			missing[s.URN] = true
			continue
		}
		left[s.URN] = true
		if snapshot.IsProvider(s.Type) {
			providers[snapshot.JoinReference(s.URN, s.ID)] = true
		}
	}
	return dependents
}

// named lists the URNs of some states for a message.
func named(states []engine.State, some set) string {
	const shown = 10
	var names []string
	for i, s := range states {
		if some[i] {
			names = append(names, string(s.URN))
		}
	}
	if more := len(names) - shown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), more)
	}
	return strings.Join(names, ", ")
}

// repaired returns the states in an order in which everything stands behind what it refers to, without references to
// what is missing.
func repaired(states []engine.State) ([]engine.State, []string) {
	if snapshot.Verify(states) == nil {
		return states, nil
	}
	was := make(map[engine.Key]int, len(states))
	for i, s := range states {
		was[s.Key] = i
	}
	out := snapshot.Repair(states)
	var changes []string
	last := -1
	for i := range out {
		before := was[out[i].Key]
		if before < last {
			changes = append(changes, "move "+string(out[i].URN)+" behind what it refers to")
		}
		last = max(last, before)
		for _, u := range states[before].References() {
			if !slices.Contains(out[i].References(), u) {
				changes = append(changes, fmt.Sprintf("remove the reference of %s to %s, which is missing", out[i].URN,
					u))
			}
		}
	}
	return out, changes
}
