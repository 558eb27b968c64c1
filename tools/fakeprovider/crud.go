package fakeprovider

import (
	"context"
	"errors"
	"maps"
	"net/http"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

// generation is the property in which the cloud keeps how often a thing was made or updated.
const generation = "generation"

// errInit is the error beside a partial state; the reasons say the rest.
var errInit = errors.New("the thing exists, but failed to initialise")

// Create makes the thing. A name or id that is taken is an error: nothing is adopted.
func (f *fake) Create(ctx context.Context, req p.CreateRequest) (p.CreateResponse, error) {
	k, err := f.kindOf(req.Urn)
	if err != nil {
		return p.CreateResponse{}, err
	}
	if req.DryRun {
		return p.CreateResponse{Properties: k.preview(req.Properties, nil)}, nil
	}
	ctx, cancel := f.within(ctx, req.Timeout)
	defer cancel()
	body := k.toCloud(req.Urn, req.Properties)
	body.Properties[generation] = 1.0
	if k.naming != server {
		body.Name = text(req.Properties.Get("name"))
		body.ID = body.Name
	}
	if k.scoped {
		body.ID = f.account + ":" + text(req.Properties.Get("zone")) + ":" + body.Name
	}
	var made object
	err = f.create(ctx, k, request{http.MethodPost, path(k.cloud), string(req.Urn), body}, &made)
	if err != nil {
		return p.CreateResponse{}, f.reported("create", string(req.Urn.Type().Name()), req.Urn.Name(), err)
	}
	partial, err := f.initialised(req.Properties)
	if err != nil && partial == nil {
		return p.CreateResponse{}, err
	}
	out := f.habitual(k.outputs(made, req.Properties), false)
	return p.CreateResponse{ID: made.ID, Properties: out, PartialState: partial}, err
}

// Read shows the thing as it is; an empty id says that it is not there. The inputs are those of the cloud, so that a
// change from outside shows, and an import needs nothing but the id.
func (f *fake) Read(ctx context.Context, req p.ReadRequest) (p.ReadResponse, error) {
	k, err := f.kindOf(req.Urn)
	if err != nil {
		return p.ReadResponse{}, err
	}
	ctx, cancel := f.within(ctx, 0)
	defer cancel()
	var found object
	err = f.cloud.call(ctx, request{http.MethodGet, path(k.cloud, req.ID), string(req.Urn), nil}, &found)
	if isNotFound(err) {
		return p.ReadResponse{}, nil
	}
	if err != nil {
		return p.ReadResponse{}, f.reported("read", string(req.Urn.Type().Name()), req.ID, err)
	}
	in := k.fromCloud(found, req.Inputs)
	out := f.habitual(k.outputs(found, in), true)
	return p.ReadResponse{ID: found.ID, Inputs: f.inputsAsRead(in), Properties: out}, nil
}

// Update replaces the thing's properties.
func (f *fake) Update(ctx context.Context, req p.UpdateRequest) (p.UpdateResponse, error) {
	k, err := f.kindOf(req.Urn)
	if err != nil {
		return p.UpdateResponse{}, err
	}
	if req.DryRun {
		return p.UpdateResponse{Properties: k.preview(req.Inputs, req.State.AsMap())}, nil
	}
	ctx, cancel := f.within(ctx, req.Timeout)
	defer cancel()
	body := k.toCloud(req.Urn, req.Inputs)
	body.Properties[generation] = number(req.State.Get(generation)) + 1
	var made object
	err = f.cloud.call(ctx, request{http.MethodPut, path(k.cloud, req.ID), string(req.Urn), body}, &made)
	if err != nil {
		return p.UpdateResponse{}, f.reported("update", string(req.Urn.Type().Name()), req.ID, err)
	}
	partial, err := f.initialised(req.Inputs)
	if err != nil && partial == nil {
		return p.UpdateResponse{}, err
	}
	return p.UpdateResponse{Properties: f.habitual(k.outputs(made, req.Inputs), false), PartialState: partial}, err
}

// Delete removes the thing; that it is gone already is a success.
func (f *fake) Delete(ctx context.Context, req p.DeleteRequest) error {
	k, err := f.kindOf(req.Urn)
	if err != nil {
		return err
	}
	ctx, cancel := f.within(ctx, req.Timeout)
	defer cancel()
	err = f.cloud.call(ctx, request{http.MethodDelete, path(k.cloud, req.ID), string(req.Urn), nil}, nil)
	if isNotFound(err) {
		return nil
	}
	return f.reported("delete", string(req.Urn.Type().Name()), req.ID, err)
}

// initialised is the partial failure that failInit asks for. By habit, the state is dropped, and the error alone is
// left.
func (f *fake) initialised(in property.Map) (*p.InitializationFailed, error) {
	if !truth(in.Get("failInit")) {
		return nil, nil
	}
	if f.habits {
		return nil, errors.New("waiting for Fake Thing to become ready: " + errInit.Error())
	}
	return &p.InitializationFailed{Reasons: []string{"failInit is set", "the thing exists all the same"}}, errInit
}

// toCloud is the thing as the inputs describe it. The cloud is told everything, secrets too.
func (k kind) toCloud(urn resource.URN, in property.Map) object {
	o := object{Properties: map[string]any{}}
	for name, v := range in.All {
		o.Properties[name] = toJSON(v)
	}
	if k.tagged {
		o.Tags = map[string]string{urnTag: string(urn)}
	}
	return o
}

// fromCloud gives the inputs that would make the thing as it is now. What olds had as a secret stays one.
func (k kind) fromCloud(o object, olds property.Map) property.Map {
	in := map[string]property.Value{}
	for _, d := range k.inputs() {
		if v, ok := o.Properties[d.name]; ok {
			in[d.name] = fromJSON(v).WithSecret(d.secret || olds.Get(d.name).Secret())
		}
	}
	if k.naming != server {
		in["name"] = property.New(o.Name)
	}
	return property.NewMap(in)
}

// outputs are the inputs and what the cloud and the provider made.
func (k kind) outputs(o object, in property.Map) property.Map {
	out := map[string]property.Value{}
	for name, v := range in.All {
		out[name] = v.WithDependencies(nil)
	}
	nth, _ := o.Properties[generation].(float64) // a foreign thing has none
	maps.Copy(out, map[string]property.Value{
		"arn":       property.New("fake:" + k.cloud + ":" + o.ID),
		"endpoint":  property.New(o.ID + "." + text(in.Get("zone")) + ".fake"),
		generation:  property.New(nth),
		"accessKey": property.New(accessKey(k.cloud, o.ID)).WithSecret(true),
	})
	if n := int(number(in.Get("blobSize"))); n > 0 {
		out["blob"] = property.New(blob(o.ID, n))
	}
	return property.NewMap(out)
}

// preview are the outputs as far as they are known before the deed: for an update, what stays as it is.
func (k kind) preview(in property.Map, olds map[string]property.Value) property.Map {
	out := map[string]property.Value{}
	for _, d := range computed {
		out[d.name] = property.New(property.Computed).WithSecret(d.secret)
	}
	for _, stays := range []string{"arn", "endpoint", "accessKey"} {
		if v, ok := olds[stays]; ok {
			out[stays] = v
		}
	}
	if _, given := in.GetOk("blobSize"); !given {
		delete(out, "blob")
	}
	for name, v := range in.All {
		out[name] = v.WithDependencies(nil)
	}
	return property.NewMap(out)
}
