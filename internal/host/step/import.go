package step

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// importOf returns what the request says about a resource that is imported.
func (s *Steps) importOf(u urn.URN) deployments.Import {
	name := u.Name()
	for _, in := range s.request.Imports {
		if in.Name == name && in.URN(s.request.Stack) == u {
			return in
		}
	}
	return deployments.Import{}
}

// keptInputs returns the inputs that an import keeps of those that were read: all, unless the request names some.
func keptInputs(in deployments.Import, inputs resource.PropertyMap) resource.PropertyMap {
	if len(in.Properties) == 0 {
		return inputs
	}
	kept := maps.Clone(inputs)
	maps.DeleteFunc(kept, func(key resource.PropertyKey, _ resource.PropertyValue) bool {
		return !slices.Contains(in.Properties, string(key))
	})
	return kept
}

// checkImported warns if the provider does not accept the inputs that it has read: a program that declares them will
// fail.
func (at *attempt) checkImported(ctx context.Context, p *pluginhost.Provider, inputs resource.PropertyMap) error {
	u := at.step.URN
	checked, err := p.Check(ctx, plugin.CheckRequest{
		URN: u, Name: u.Name(), Type: u.Type(), Olds: inputs, News: inputs, AllowUnknowns: at.step.Preview,
		RandomSeed: at.step.Seed,
	})
	if err != nil {
		return err
	}
	for _, f := range checked.Failures {
		at.session.tell(diag.Warning, u, strings.TrimPrefix(string(f.Property)+": ", ": ")+f.Reason+
			"; the resource is imported, but a program that declares it like this will not be accepted")
	}
	return nil
}
