// Package binding provides deployctl:index:Binding, which adds inputs to a resource that was registered before what
// they come from. The service carries bindings out itself, without a provider: this package tells languages their type.
package binding

import (
	"context"
	"errors"

	"github.com/deployctl/deployctl/provider"
)

// Module is the module of bindings.
func Module() provider.Module {
	return provider.Module{Resources: []provider.Resource{
		provider.NewResource("deployctl:index:Binding", &Binding{}),
	}}
}

// Binding is deployctl:index:Binding.
type Binding struct{}

// In declares what is added to which resource.
type In struct {
	Resource string         `pulumi:"resource" doc:"The URN of the resource that gets the inputs. The program registers it before; it is not a component, a provider or the result of a read."`
	Inputs   map[string]any `pulumi:"inputs" doc:"The inputs that it gets. Each takes the place of its own input of this name, and none of them may be one that replaces it."`
}

// Out is empty: a binding has its inputs alone.
type Out struct{}

// Describe is the type's text in the schema.
func (b *Binding) Describe() string {
	return "Inputs for a resource that come from another one which needs it: two that need each other. When both exist, " +
		"the resource is reconciled once more in the same update, with these inputs. The next update knows them from " +
		"the beginning, and has nothing to do."
}

var errElsewhere = errors.New("a binding is carried out by the deployctl service, and by no other engine: run the " +
	"update with `deployctl up`")

// Reconcile is called by other engines only, and refuses.
func (b *Binding) Reconcile(context.Context, provider.Request[In, Out]) (string, Out, error) {
	return "", Out{}, errElsewhere
}

// Delete has nothing to delete.
func (b *Binding) Delete(context.Context, provider.Existing[In, Out]) error { return nil }
