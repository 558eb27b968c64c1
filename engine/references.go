package engine

import (
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// references returns every URN that a registration names, in the order of State.References. An entry waits until all of
// them are done.
func (g *Registration) references() []urn.URN {
	s := State{
		Parent: g.Parent, Provider: g.Provider, Dependencies: g.Dependencies,
		PropertyDependencies: g.PropertyDependencies, DeletedWith: g.DeletedWith, ReplaceWith: g.ReplaceWith,
	}
	return s.References()
}

// reference returns a copy of a state for a command, with renamed references; nil when there is none. A command
// outlives the event that led to it, so it must not share a state that the core goes on changing.
func (r *Run) reference(k Key) *State {
	state := r.snap.Get(k)
	if state == nil {
		return nil
	}
	out := r.snap.Renamed(*state)
	return &out
}

// providerFor says with which provider calls about a state are made; nil for components.
func (r *Run) providerFor(s *State) *Provider {
	p := r.providerOf(s.Provider)
	if p != nil {
		p.Extension = s.Extension
	}
	return p
}

// providerOf says with which provider a reference's calls are made; nil for components. A provider that has been
// renamed in this update is found by its old reference, too. A reference that no state has is passed on as it is,
// without inputs.
func (r *Run) providerOf(ref string) *Provider {
	if ref == "" {
		return nil
	}
	p := &Provider{Ref: ref}
	if state := r.snap.Provider(ref); state != nil {
		p.Ref = snapshot.JoinReference(state.URN, state.ID)
		p.Inputs = state.Inputs
	}
	return p
}
