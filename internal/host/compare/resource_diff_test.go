package compare

import (
	"context"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// undecided is a provider that leaves the comparison to the engine.
type undecided struct{}

func (undecided) Diff(context.Context, plugin.DiffRequest) (plugin.DiffResponse, error) {
	return plugin.DiffResponse{}, nil
}

func TestAValueThatBecomesASecretIsNoDifference(t *testing.T) {
	bar := resource.NewProperty("bar")
	secret := resource.MakeSecret(bar)
	output := resource.NewProperty(resource.Output{Element: bar, Known: true})
	deep := func(v resource.PropertyValue) resource.PropertyValue {
		return resource.NewProperty(resource.PropertyMap{"in": resource.NewProperty([]resource.PropertyValue{v})})
	}
	for name, c := range map[string]struct {
		old, now resource.PropertyValue
		want     plugin.DiffChanges
	}{
		"a secret":             {bar, secret, plugin.DiffNone},
		"no secret any more":   {secret, bar, plugin.DiffNone},
		"an output":            {bar, output, plugin.DiffNone},
		"a secret deep inside": {deep(bar), deep(secret), plugin.DiffNone},
		"another secret":       {secret, resource.MakeSecret(resource.NewProperty("baz")), plugin.DiffSome},
		"unknown":              {bar, resource.NewProperty(resource.Output{Element: bar}), plugin.DiffSome},
	} {
		d, err := Resource{
			URN:       "urn:pulumi:dev::proj::pkg:index:R::r",
			OldInputs: resource.PropertyMap{"foo": c.old}, NewInputs: resource.PropertyMap{"foo": c.now},
		}.Diff(t.Context(), undecided{})
		if err != nil || d.Changes != c.want {
			t.Errorf("%s: %v, and not %v; %v", name, d.Changes, c.want, err)
		}
	}
}
