package engine

import (
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// DefaultProvider is the configuration of a package's default provider.
type DefaultProvider struct {
	Package string `json:"package"`
	Inputs  Bag    `json:"inputs"`
}

// defaultName is the name of the default provider of resources that were stored without one.
const defaultName = "default"

// giveDefaults gives the stored resources that lack one their package's default provider, which is made if the stack
// has none of that name. Without a provider they could neither be read nor deleted.
//
// It must run after the stored state was accepted and before settlePending, whose steps need the provider as well. The
// change is recorded like any other, so the checkpoint names the provider even if nothing else happens in the update.
func (r *Run) giveDefaults() {
	for _, d := range r.goal.Defaults {
		var lacking []State
		r.snap.All(func(s *State) {
			if pkg, needs := s.NeedsProvider(); needs && pkg == d.Package {
				lacking = append(lacking, *s)
			}
		})
		ref := ""
		// A pending create only needs the provider to exist: withDefault puts the reference into its step.
		for _, p := range r.snap.Pending() {
			if pkg, needs := p.State.NeedsProvider(); needs && pkg == d.Package {
				ref = r.defaultProvider(d)
			}
		}
		for i := range lacking {
			ref = r.defaultProvider(d)
			lacking[i].Provider = ref
			r.change(Delta{Kind: DeltaSet, State: &lacking[i]})
		}
		if ref != "" {
			r.diagnose("info", "", "stored resources of package %s name no provider; they get %s", d.Package,
				r.defaultURN(d.Package))
		}
	}
}

// defaultProvider returns the reference of a package's default provider, which then precedes everything in the base:
// what gets the reference keeps its place there, and a provider must stand before what it manages. It is recorded
// without a step: it is configured when it is used. Its id comes from its seed, as for any provider that a program
// registers.
func (r *Run) defaultProvider(d DefaultProvider) string {
	u := r.defaultURN(d.Package)
	if live := r.snap.Live(u); live != nil {
		r.keep(live.Key)
		return snapshot.JoinReference(u, live.ID)
	}
	op := r.newOp()
	state := State{
		Key: snapshot.OpKey(op), URN: u, Type: tokens.Type(snapshot.ProviderTypes + d.Package), Custom: true,
		ID:     ProviderID(r.seed(u)),
		Inputs: d.Inputs, Outputs: d.Inputs,
	}
	r.change(Delta{Kind: DeltaPut, Op: op, State: &state})
	return snapshot.JoinReference(u, state.ID)
}

func (r *Run) defaultURN(pkg string) urn.URN {
	return urn.New(tokens.QName(r.goal.Stack), tokens.PackageName(r.goal.Project), "",
		tokens.Type(snapshot.ProviderTypes+pkg),
		defaultName)
}

// withDefault returns the state of a pending operation with its package's default provider, if it lacks one.
func (r *Run) withDefault(s State) State {
	if pkg, needs := s.NeedsProvider(); needs {
		if live := r.snap.Live(r.defaultURN(pkg)); live != nil {
			s.Provider = snapshot.JoinReference(live.URN, live.ID)
		}
	}
	return s
}
