package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// Constructor is what an author writes for a component: a resource that is nothing but its children.
type Constructor[In, Out any] interface {
	// Construct registers the children. In a preview, outputs left zero are unknown.
	Construct(ctx context.Context, c *Construction, in In) (Out, error)
}

// Component is one component type of a module; make one with NewComponent.
type Component struct {
	token       string
	description string
	in, out     *object
	construct   func(ctx context.Context, c *Construction) (properties, error)
}

// NewComponent declares a component type package:module:Type over structs with `pulumi` tags.
func NewComponent[In, Out any](token string, impl Constructor[In, Out]) Component {
	in, out := objectOf[In](), objectOf[Out]()
	return Component{token: token, in: in, out: out, description: describe(impl),
		construct: func(ctx context.Context, c *Construction) (properties, error) {
			var inputs In
			if err := in.decode(ctx, c.inputs, &inputs); err != nil {
				return nil, err
			}
			answer, err := impl.Construct(ctx, c, inputs)
			if err != nil {
				return nil, err
			}
			if !c.Preview {
				return out.encode(answer)
			}
			told, err := out.encodeSet(answer)
			for _, f := range out.fields {
				if key := resource.PropertyKey(f.name); !has(told, key) {
					told[key] = resource.MakeComputed(resource.NewProperty(""))
				}
			}
			return told, err
		}}
}

// Construction is one component being made. Its methods may be called concurrently.
type Construction struct {
	// Name is the component's logical name, and URN what the engine calls it.
	Name    string
	URN     urn.URN
	Preview bool

	inputs  properties
	req     *pulumirpc.ConstructRequest
	monitor pulumirpc.ResourceMonitorClient
}

// Known says whether all the named inputs have a value yet.
func (c *Construction) Known(names ...string) bool {
	for _, name := range names {
		if c.inputs[resource.PropertyKey(name)].ContainsUnknowns() {
			return false
		}
	}
	return true
}

// Child is a resource that a component registers.
type Child struct {
	// Type is its token, and Name its logical name: unique among all resources of its type and parentage, so it usually
	// starts with the component's own.
	Type string
	Name string
	// Inputs are its own properties.
	Inputs resource.PropertyMap
	// Pass are inputs of the component handed on under the same name, unknown or secret as they are, with their
	// dependencies.
	Pass []string
}

// Registered is what the engine made of a child.
type Registered struct {
	URN     urn.URN
	ID      string
	Outputs resource.PropertyMap
}

// Register registers a child and returns when the engine is done with it.
func (c *Construction) Register(ctx context.Context, child Child) (Registered, error) {
	req := &pulumirpc.RegisterResourceRequest{
		Type: child.Type, Name: child.Name, Custom: true, Parent: string(c.URN),
		Providers: c.req.GetProviders(), Protect: c.req.Protect, RetainOnDelete: c.req.RetainOnDelete,
		DeletedWith: c.req.GetDeletedWith(), AcceptSecrets: true,
		PropertyDependencies: map[string]*pulumirpc.RegisterResourceRequest_PropertyDependencies{},
	}
	pkg := resourcePackage(child.Type)
	req.Provider = c.req.GetProviders()[pkg]
	inputs := maps.Clone(child.Inputs)
	if inputs == nil {
		inputs = resource.PropertyMap{}
	}
	for _, name := range child.Pass {
		v, ok := c.inputs[resource.PropertyKey(name)]
		if !ok {
			continue
		}
		inputs[resource.PropertyKey(name)] = v
		urns := c.req.GetInputDependencies()[name].GetUrns()
		req.PropertyDependencies[name] = &pulumirpc.RegisterResourceRequest_PropertyDependencies{Urns: urns}
		req.Dependencies = append(req.Dependencies, urns...)
	}
	slices.Sort(req.Dependencies)
	req.Dependencies = slices.Compact(req.Dependencies)
	return c.register(ctx, req, inputs)
}

func (c *Construction) register(
	ctx context.Context, req *pulumirpc.RegisterResourceRequest, inputs resource.PropertyMap,
) (Registered, error) {
	var err error
	req.Object, err = plugin.MarshalProperties(inputs, plugin.MarshalOptions{
		KeepUnknowns: true, KeepSecrets: true, SkipNulls: true,
		ComputeAssetHashes: true, WorkingDirectory: ProgramDir(ctx),
	})
	if err != nil {
		return Registered{}, fmt.Errorf("%s: %w", req.GetName(), err)
	}
	resp, err := c.monitor.RegisterResource(ctx, req)
	if err != nil {
		return Registered{}, err
	}
	if resp.GetResult() == pulumirpc.Result_FAIL {
		return Registered{}, fmt.Errorf("%s %q failed", req.GetType(), req.GetName())
	}
	outputs, err := unmarshal(ctx, resp.GetObject())
	return Registered{URN: urn.URN(resp.GetUrn()), ID: resp.GetId(), Outputs: outputs}, err
}

// resourcePackage is the package of a token.
func resourcePackage(token string) string {
	for i, r := range token {
		if r == ':' {
			return token[:i]
		}
	}
	return token
}
