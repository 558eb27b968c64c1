package snapshot

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// The order of a snapshot is the order in which its resources can be created, and its reverse that in which they can be
// deleted. Pulumi relies on it as well, so an exported state must keep it.

// Verify reports every invariant of a snapshot that the states break, joined; nil when they hold.
//
// Invariant: every state has a valid URN and a type, and they agree.
// Invariant: components have no id; a managed custom resource has one.
// Invariant: a provider reference resolves to a provider that stands earlier (a pending replacement may lack it).
// Invariant: parent, dependencies, property dependencies, deletedWith and replaceWith stand earlier.
// Invariant: at most one state per URN does not wait for deletion.
func Verify(states []State) error {
	var errs []error
	report := func(s State, format string, args ...any) {
		errs = append(errs, fmt.Errorf("resource %s: %s", s.URN, fmt.Sprintf(format, args...)))
	}
	earlier := make(map[urn.URN]bool, len(states))
	live := make(map[urn.URN]bool, len(states))
	providers := map[string]bool{}
	for _, s := range states {
		verifyShape(s, report)
		if s.Provider != "" && !s.PendingReplacement && !providers[s.Provider] {
			report(s, "its provider %s is missing or listed after it", s.Provider)
		}
		providerURN, _ := SplitReference(s.Provider)
		// A copy that stands earlier satisfies a reference: what was not updated still uses the old resource.
		for _, u := range s.References() {
			// The provider has been checked above, by its id.
			if u != providerURN && !earlier[u] {
				report(s, "it refers to %s, which is missing or listed after it", u)
			}
		}
		if !s.Delete {
			if live[s.URN] {
				report(s, "it is listed more than once")
			}
			live[s.URN] = true
		}
		// After the checks: a state must not refer to itself.
		earlier[s.URN] = true
		if IsProvider(s.Type) {
			providers[JoinReference(s.URN, s.ID)] = true
		}
	}
	return errors.Join(errs...)
}

// operations are the kinds of pending operations.
var operations = []string{"creating", "updating", "deleting", "reading", "importing"}

// VerifyPending reports every pending operation that cannot be one, joined. What its state refers to may be gone since.
// It is checked less strictly than a state for that reason: settling removes references to what is gone.
func VerifyPending(pending []PendingOperation) error {
	var errs []error
	for _, p := range pending {
		report := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("pending operation on %s: %s", p.State.URN, fmt.Sprintf(format, args...)))
		}
		switch {
		case !slices.Contains(operations, p.Kind):
			report("%q is not a kind of operation", p.Kind)
		case !p.State.URN.IsValid():
			report("its URN is not valid")
		case !HasType(p.State.URN, p.State.Type):
			report("its type is %q, which its URN does not say", p.State.Type)
		}
	}
	return errors.Join(errs...)
}

// Flaw is the first invariant that one state breaks where it stands; empty when it breaks none. A run looks at every
// state that it changes, because looking at all takes as long as there are states. The checks are those of Verify,
// which end makes over the whole: flaw names the change that broke the invariant, so that the update can stop early.
func (s *Snapshot) Flaw(k Key) string {
	at := s.Get(k)
	if at == nil {
		return ""
	}
	state := s.Renamed(*at)
	found := ""
	report := func(of State, format string, args ...any) {
		if found == "" {
			found = fmt.Sprintf("resource %s: %s", of.URN, fmt.Sprintf(format, args...))
		}
	}
	verifyShape(state, report)
	stands := func(o Key) bool { return s.Position(o) < s.Position(k) }
	// A pending replacement gets the provider of its registration when it is created.
	if p := s.Provider(state.Provider); state.Provider != "" && !state.PendingReplacement &&
		(p == nil || !stands(p.Key)) {
		report(state, "its provider %s is missing or listed after it", state.Provider)
	}
	providerURN, _ := SplitReference(state.Provider)
	for _, u := range state.References() {
		if u != providerURN && !slices.ContainsFunc(s.copies[u], stands) {
			report(state, "it refers to %s, which is missing or listed after it", u)
		}
	}
	stays := func(o Key) bool { return o != k && !s.Get(o).Delete }
	if !state.Delete && slices.ContainsFunc(s.copies[state.URN], stays) {
		report(state, "it is listed more than once")
	}
	return found
}

// verifyShape reports the first thing that is wrong with a state by itself, without the others.
func verifyShape(s State, report func(State, string, ...any)) {
	switch {
	case !s.URN.IsValid():
		report(s, "its URN is not valid")
	case s.Type == "":
		report(s, "it has no type")
	case !HasType(s.URN, s.Type):
		report(s, "its type is %s, which its URN does not say", s.Type)
	case !s.Custom && s.ID != "":
		report(s, "it is a component, yet it has the id %s", s.ID)
	case s.Custom && s.ID == "" && !s.PendingReplacement:
		report(s, "it has no id")
	}
}
