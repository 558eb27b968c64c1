package fakeprovider

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// partType is the type of the views of a Fleet: each entry of its settings is one, with the value as its output. An
// entry "broken" cannot be updated. An entry whose value begins with "!" is replaced when it changes.
const partType = "fake:index:Part"

// publication is where the steps of views go.
type publication struct{ address, token string }

// publish publishes steps, unless there are none or the engine has no views.
func (p publication) publish(ctx context.Context, steps []*rpc.ViewStep) error {
	if p.address == "" || len(steps) == 0 {
		return nil
	}
	conn, err := grpc.NewClient(p.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = rpc.NewResourceStatusClient(conn).PublishViewSteps(ctx,
		&rpc.PublishViewStepsRequest{Token: p.token, Steps: steps})
	return err
}

// hasViews reports whether the things of a URN have views.
func hasViews(urn string) bool {
	return kinds[resource.URN(urn).Type()].views
}

// Create publishes a part for each setting once the Fleet is made.
func (r *raw) Create(ctx context.Context, req *rpc.CreateRequest) (*rpc.CreateResponse, error) {
	resp, err := r.ResourceProviderServer.Create(ctx, req)
	if err != nil || !hasViews(req.GetUrn()) {
		return resp, err
	}
	to := publication{req.GetResourceStatusAddress(), req.GetResourceStatusToken()}
	return resp, to.publish(ctx, changes(nil, parts(req.GetName(), req.GetProperties())))
}

// Update publishes what becomes of each part.
func (r *raw) Update(ctx context.Context, req *rpc.UpdateRequest) (*rpc.UpdateResponse, error) {
	resp, err := r.ResourceProviderServer.Update(ctx, req)
	if err != nil || !hasViews(req.GetUrn()) {
		return resp, err
	}
	to := publication{req.GetResourceStatusAddress(), req.GetResourceStatusToken()}
	return resp, to.publish(ctx, changes(stored(req.GetOldViews()), parts(req.GetName(), req.GetNews())))
}

// Delete publishes that the parts are gone.
func (r *raw) Delete(ctx context.Context, req *rpc.DeleteRequest) (*emptypb.Empty, error) {
	resp, err := r.ResourceProviderServer.Delete(ctx, req)
	if err != nil || !hasViews(req.GetUrn()) {
		return resp, err
	}
	to := publication{req.GetResourceStatusAddress(), req.GetResourceStatusToken()}
	return resp, to.publish(ctx, changes(stored(req.GetOldViews()), nil))
}

// Read publishes how the parts of a stored Fleet are now.
func (r *raw) Read(ctx context.Context, req *rpc.ReadRequest) (*rpc.ReadResponse, error) {
	resp, err := r.ResourceProviderServer.Read(ctx, req)
	if err != nil || !hasViews(req.GetUrn()) {
		return resp, err
	}
	to := publication{req.GetResourceStatusAddress(), req.GetResourceStatusToken()}
	return resp, to.publish(ctx, changes(stored(req.GetOldViews()), parts(req.GetName(), resp.GetProperties())))
}

// parts are the states of a Fleet's parts, by name. Those that are not known yet are none.
func parts(owner string, properties *structpb.Struct) map[string]*rpc.ViewStepState {
	all := map[string]*rpc.ViewStepState{}
	for name, value := range properties.GetFields()["settings"].GetStructValue().GetFields() {
		if value.GetStringValue() == plugin.UnknownStringValue || name == resource.SigKey {
			continue
		}
		values := &structpb.Struct{Fields: map[string]*structpb.Value{"value": value}}
		all[owner+"-"+name] = &rpc.ViewStepState{Type: partType, Name: owner + "-" + name, Inputs: values, Outputs: values}
	}
	return all
}

// stored are the states of the parts that the engine knows.
func stored(views []*rpc.View) map[string]*rpc.ViewStepState {
	all := map[string]*rpc.ViewStepState{}
	for _, v := range views {
		all[v.GetName()] = &rpc.ViewStepState{
			Type: v.GetType(), Name: v.GetName(), Inputs: v.GetInputs(), Outputs: v.GetOutputs(),
		}
	}
	return all
}

// changes are the steps from old to new parts, in the order of their names.
func changes(old, now map[string]*rpc.ViewStepState) []*rpc.ViewStep {
	names := maps.Clone(old)
	if names == nil {
		names = map[string]*rpc.ViewStepState{}
	}
	maps.Copy(names, now)
	var steps []*rpc.ViewStep
	for _, name := range slices.Sorted(maps.Keys(names)) {
		steps = append(steps, partChange(name, old[name], now[name])...)
	}
	return steps
}

// partChange is what becomes of one part.
func partChange(name string, old, now *rpc.ViewStepState) []*rpc.ViewStep {
	step := &rpc.ViewStep{Type: partType, Name: name, Old: old, New: now}
	value := now.GetOutputs().GetFields()["value"].GetStringValue()
	switch {
	case now == nil:
		step.Op = rpc.ViewStep_DELETE
	case old == nil:
		step.Op = rpc.ViewStep_CREATE
	case proto.Equal(old.GetOutputs(), now.GetOutputs()):
		step.Op = rpc.ViewStep_SAME
	case strings.HasPrefix(value, "!"):
		return []*rpc.ViewStep{
			{Op: rpc.ViewStep_CREATE_REPLACEMENT, Type: partType, Name: name, Old: old, New: now, Keys: []string{"value"}},
			{Op: rpc.ViewStep_REPLACE, Type: partType, Name: name, Old: old, New: now, Keys: []string{"value"}},
			{Op: rpc.ViewStep_DELETE_REPLACED, Type: partType, Name: name, Old: old},
		}
	case strings.HasSuffix(name, "-broken"):
		step.Op, step.Status, step.Error = rpc.ViewStep_UPDATE, rpc.ViewStep_UNKNOWN, "the part is broken"
	default:
		step.Op, step.Diffs = rpc.ViewStep_UPDATE, []string{"value"}
	}
	return []*rpc.ViewStep{step}
}
