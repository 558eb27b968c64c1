package plan

import (
	"context"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// cascade grows the set of resources to be deleted (members). Candidates come in dependency order, so one pass is
// enough.
type cascade struct {
	session   *Plans
	providers map[string]engine.Provider
	members   map[urn.URN]bool
}

// replaces reports whether a candidate must be replaced because its provider, its deletedWith or one of its inputs is a
// member's; with it, the properties that force it.
func (c cascade) replaces(ctx context.Context, r engine.State) (bool, []string, error) {
	if !r.Custom || r.External {
		return false, nil, nil
	}
	if ref, err := token.ParseReference(r.Provider); err == nil && c.members[ref.URN()] {
		return true, nil, nil
	}
	if c.members[r.DeletedWith] { // its delete takes this one along
		return true, nil, nil
	}
	lost := c.lost(r)
	if len(lost) == 0 {
		return false, nil, nil
	}
	inputs, err := c.session.values.Decode(ctx, r.Inputs)
	if err != nil {
		return false, nil, failure.Internal(err)
	}
	outputs, err := c.session.values.Decode(ctx, r.Outputs)
	if err != nil {
		return false, nil, failure.Internal(err)
	}
	news := inputs.Copy()
	affected := false
	for _, key := range lost {
		if _, ok := news[key]; ok {
			news[key], affected = resource.MakeComputed(resource.NewProperty("")), true
		}
	}
	if !affected {
		return false, nil, nil
	}
	provider, err := c.providerOf(ctx, r)
	if err != nil {
		return false, nil, err
	}
	d, err := compare.Resource{
		URN: r.URN, ID: r.ID, OldInputs: inputs, OldOutputs: outputs, NewInputs: news,
		IgnoreChanges: r.IgnoreChanges, Unknowns: true,
	}.Diff(ctx, provider)
	if compare.Unavailable(err) {
		d, err = plugin.DiffResult{Changes: plugin.DiffSome}, nil
	}
	if err != nil {
		return false, nil, err
	}
	if d, err = compare.ReplaceOnChanges(d, r.ReplaceOnChanges, false); err != nil {
		return false, nil, err
	}
	return d.Replace(), compare.Names(d.ReplaceKeys), nil
}

// lost returns the properties of a resource that depend on a members resource.
func (c cascade) lost(r engine.State) []resource.PropertyKey {
	var lost []resource.PropertyKey
	for _, d := range r.PropertyDependencies {
		if slices.ContainsFunc(d.URNs, func(u urn.URN) bool { return c.members[u] }) {
			lost = append(lost, resource.PropertyKey(d.Property))
		}
	}
	return lost
}

func (c cascade) providerOf(ctx context.Context, r engine.State) (compare.Differ, error) {
	if token.IsProvider(r.Type) {
		return compare.Configurator(c.session.facts), nil
	}
	p, ok := c.providers[r.Provider]
	if !ok {
		return nil, failure.Internal(deployments.Errorf(deployments.CodeInternal, "a cascade lacks provider %s of %s",
			r.Provider,
			r.URN))
	}
	p.Extension = r.Extension
	return c.session.providers.Of(ctx, &p)
}

// Cascade finds the dependents that must be replaced together with a resource that is deleted before it is replaced.
func (s *Plans) Cascade(ctx context.Context, ask engine.Cascade) (engine.CascadePlanned, error) {
	c := cascade{session: s, providers: ask.Providers, members: map[urn.URN]bool{ask.Root.URN: true}}
	planned := engine.CascadePlanned{Op: ask.Op}
	for _, candidate := range ask.Candidates {
		var keys []string
		var replaces bool
		err := hosted.Retried(ctx, func() (err error) {
			replaces, keys, err = c.replaces(ctx, candidate)
			return err
		})
		provider := c.providers[candidate.Provider]
		hide := s.host.Redactor(ctx, failure.BagsOf(&provider, &candidate)...)
		own, internal := failure.OfService(err)
		switch {
		case ctx.Err() != nil:
			return planned, ctx.Err()
		case internal:
			return planned, hide.Failure(own)
		case err != nil:
			return engine.CascadePlanned{Op: ask.Op, Error: hide(pluginhost.ErrorText(err))}, nil
		case replaces:
			c.members[candidate.URN] = true
			planned.Members = append(planned.Members, engine.Dependent{Key: candidate.Key, Keys: keys})
		}
	}
	return planned, nil
}
