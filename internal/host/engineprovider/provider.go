// Package engineprovider is the provider of the engine's own package, pulumi: references to other stacks, and stashes.
package engineprovider

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/statestore"
	"github.com/google/uuid"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Package is the package whose resources and functions the engine itself provides.
const Package = "pulumi"

// The resources and functions of the package.
const (
	// stackReference is the type of a reference to another stack.
	stackReference tokens.Type = "pulumi:pulumi:StackReference"
	// stash is the type of a value that is kept in the state: its output stays what the input was when it was created.
	stash tokens.Type = "pulumi:index:Stash"

	readStackOutputs         = "pulumi:pulumi:readStackOutputs"
	readStackResourceOutputs = "pulumi:pulumi:readStackResourceOutputs"
)

// engineInputs are the inputs of the types of the package, one each.
var engineInputs = map[tokens.Type]string{stackReference: "name", stash: "input"}

//go:embed schema.json
var engineSchema string

// engineProvider serves the engine's own package.
type engineProvider struct {
	pulumirpc.UnimplementedResourceProviderServer
	update  deployments.UpdateName
	request deployments.UpdateRequest
	store   *statestore.Store
	print   func(pluginhost.Message)
}

// New returns the provider of the package for an update, which reads other stacks from a store as far as
// who asked for the update may, and prints what it has left out.
func New(
	u deployments.UpdateName, r deployments.UpdateRequest, store *statestore.Store, print func(pluginhost.Message),
) pulumirpc.ResourceProviderServer {
	return &engineProvider{update: u, request: r, store: store, print: print}
}

// warn warns of something about a resource.
func (p *engineProvider) warn(u urn.URN, text string) {
	p.print(pluginhost.Message{Severity: diag.Warning, URN: u, Text: text})
}

var engineMarshal = plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, KeepResources: true}

// Handshake accepts secrets and resources.
func (*engineProvider) Handshake(
	context.Context, *pulumirpc.ProviderHandshakeRequest,
) (*pulumirpc.ProviderHandshakeResponse, error) {
	return &pulumirpc.ProviderHandshakeResponse{AcceptSecrets: true, AcceptResources: true}, nil
}

// GetSchema returns the schema of the package, which the hosts of YAML and PCL programs need.
func (*engineProvider) GetSchema(
	context.Context, *pulumirpc.GetSchemaRequest,
) (*pulumirpc.GetSchemaResponse, error) {
	return &pulumirpc.GetSchemaResponse{Schema: engineSchema}, nil
}

// GetMapping returns the settle rules: a create only reads, or does nothing, so it may be repeated.
func (*engineProvider) GetMapping(
	_ context.Context, req *pulumirpc.GetMappingRequest,
) (*pulumirpc.GetMappingResponse, error) {
	if req.GetKey() != provider.SettleMapping {
		return &pulumirpc.GetMappingResponse{}, nil
	}
	data, err := json.Marshal(map[tokens.Type]provider.Settle{
		stackReference: provider.SettleByReconcile, stash: provider.SettleByReconcile,
	})
	return &pulumirpc.GetMappingResponse{Provider: Package, Data: data}, err
}

// Configure needs no configuration.
func (*engineProvider) Configure(context.Context, *pulumirpc.ConfigureRequest) (*pulumirpc.ConfigureResponse, error) {
	return &pulumirpc.ConfigureResponse{AcceptSecrets: true, AcceptResources: true, SupportsPreview: true}, nil
}

// Check requires the input of the type, and no other.
func (p *engineProvider) Check(_ context.Context, req *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	input, err := engineInput(req.GetUrn())
	if err != nil {
		return nil, err
	}
	u := urn.URN(req.GetUrn())
	if u.Type() == stackReference {
		p.warn(u, "a StackReference that is registered is deprecated; update the SDK, which "+
			"then reads it")
	}
	resp := &pulumirpc.CheckResponse{Inputs: req.GetNews()}
	fail := func(property, reason string) {
		resp.Failures = append(resp.Failures, &pulumirpc.CheckFailure{Property: property, Reason: reason})
	}
	for property := range req.GetNews().GetFields() {
		if property != input {
			fail(property, "there is no such property")
		}
	}
	if _, ok := req.GetNews().GetFields()[input]; !ok {
		fail(input, "this property is required")
	}
	return resp, nil
}

// Diff compares the input. A reference to another stack is another resource.
func (*engineProvider) Diff(_ context.Context, req *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	input, err := engineInput(req.GetUrn())
	if err != nil {
		return nil, err
	}
	if proto.Equal(req.GetOldInputs().GetFields()[input], req.GetNews().GetFields()[input]) {
		return &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_NONE}, nil
	}
	resp := &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_SOME, Diffs: []string{input}}
	if urn.URN(req.GetUrn()).Type() == stackReference {
		resp.Replaces = resp.Diffs
	}
	return resp, nil
}

// Create reads the stack with the given name, or keeps the input.
func (p *engineProvider) Create(ctx context.Context, req *pulumirpc.CreateRequest) (*pulumirpc.CreateResponse, error) {
	resp := &pulumirpc.CreateResponse{}
	if !req.GetPreview() {
		resp.Id = uuid.NewString()
	}
	if urn.URN(req.GetUrn()).Type() == stash {
		resp.Properties = kept(req.GetProperties().GetFields()["input"], req.GetProperties().GetFields()["input"])
		return resp, nil
	}
	var err error
	resp.Properties, err = p.stack(ctx, req.GetProperties())
	return resp, err
}

// kept returns the properties of a Stash.
func kept(input, output *structpb.Value) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{"input": input, "output": output}}
}

// Update keeps the output of a Stash. A reference is never updated.
func (*engineProvider) Update(_ context.Context, req *pulumirpc.UpdateRequest) (*pulumirpc.UpdateResponse, error) {
	if t := urn.URN(req.GetUrn()).Type(); t != stash {
		return nil, status.Errorf(codes.Unimplemented, "resources of type %s are not updated", t)
	}
	return &pulumirpc.UpdateResponse{Properties: kept(req.GetNews().GetFields()["input"],
		req.GetOlds().GetFields()["output"])}, nil
}

// Read reads the stack with the given name. What a Stash keeps is in the state alone: one that is imported keeps
// nothing, as in Pulumi's engine, and the program's input is an update of it.
func (p *engineProvider) Read(ctx context.Context, req *pulumirpc.ReadRequest) (*pulumirpc.ReadResponse, error) {
	input, err := engineInput(req.GetUrn())
	if err != nil {
		return nil, err
	}
	t := urn.URN(req.GetUrn()).Type()
	if len(req.GetInputs().GetFields()) == 0 && t == stash {
		nothing := structpb.NewNullValue()
		return &pulumirpc.ReadResponse{Id: req.GetId(), Properties: kept(nothing, nothing),
			Inputs: &structpb.Struct{Fields: map[string]*structpb.Value{input: nothing}}}, nil
	}
	if _, ok := req.GetInputs().GetFields()[input]; !ok {
		return nil, status.Errorf(codes.InvalidArgument, "a resource of type %s cannot be imported", t)
	}
	for property := range req.GetInputs().GetFields() {
		if property != input {
			return nil, status.Errorf(codes.InvalidArgument, "a %s has no property %q", t, property)
		}
	}
	outputs := req.GetProperties()
	if t == stackReference {
		outputs, err = p.stack(ctx, req.GetInputs())
	}
	return &pulumirpc.ReadResponse{Id: req.GetId(), Inputs: req.GetInputs(), Properties: outputs}, err
}

// Delete does nothing: there is nothing but the state, and the other stack stays.
func (*engineProvider) Delete(context.Context, *pulumirpc.DeleteRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// Cancel does nothing: all calls are short.
func (*engineProvider) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// Invoke reads the outputs of another stack, or of its resources.
func (p *engineProvider) Invoke(ctx context.Context, req *pulumirpc.InvokeRequest) (*pulumirpc.InvokeResponse, error) {
	var (
		result *structpb.Struct
		err    error
	)
	switch req.GetTok() {
	case readStackOutputs:
		result, err = p.stack(ctx, req.GetArgs())
	case readStackResourceOutputs:
		result, err = p.resources(ctx, req.GetArgs())
	default:
		err = status.Errorf(codes.Unimplemented, "there is no function %s", req.GetTok())
	}
	return &pulumirpc.InvokeResponse{Return: result}, err
}

// engineInput returns the name of the input of a URN's type.
func engineInput(u string) (string, error) {
	input, ok := engineInputs[urn.URN(u).Type()]
	if !ok {
		return "", status.Error(codes.Unimplemented, fmt.Sprintf("there are no resources of type %s",
			urn.URN(u).Type()))
	}
	return input, nil
}
