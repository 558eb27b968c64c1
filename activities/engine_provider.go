package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// enginePackage is the package whose resources and functions the engine itself provides.
	enginePackage = "pulumi"
	// stackReference is the type of a reference to another stack; its id is the stack's name.
	stackReference = "pulumi:pulumi:StackReference"
)

// engineProvider serves the engine's own package: references to the outputs of other stacks.
type engineProvider struct {
	pulumirpc.UnimplementedResourceProviderServer
	session *session
}

var engineMarshal = plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, KeepResources: true}

// Handshake accepts secrets and resources.
func (*engineProvider) Handshake(
	context.Context, *pulumirpc.ProviderHandshakeRequest,
) (*pulumirpc.ProviderHandshakeResponse, error) {
	return &pulumirpc.ProviderHandshakeResponse{AcceptSecrets: true, AcceptResources: true}, nil
}

// Configure needs no configuration.
func (*engineProvider) Configure(context.Context, *pulumirpc.ConfigureRequest) (*pulumirpc.ConfigureResponse, error) {
	return &pulumirpc.ConfigureResponse{AcceptSecrets: true, AcceptResources: true, SupportsPreview: true}, nil
}

// Check requires the property name.
func (*engineProvider) Check(_ context.Context, req *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	if err := supported(req.GetUrn()); err != nil {
		return nil, err
	}
	resp := &pulumirpc.CheckResponse{Inputs: req.GetNews()}
	if _, ok := req.GetNews().GetFields()["name"]; !ok {
		resp.Failures = []*pulumirpc.CheckFailure{{Property: "name",
			Reason: "a StackReference needs the name of a stack"}}
	}
	return resp, nil
}

// Diff requires a replacement if the name has changed.
func (*engineProvider) Diff(_ context.Context, req *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	old, new := req.GetOldInputs().GetFields()["name"], req.GetNews().GetFields()["name"]
	if old.GetStringValue() == new.GetStringValue() {
		return &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_NONE}, nil
	}
	return &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_SOME, Replaces: []string{"name"},
		Diffs: []string{"name"}}, nil
}

// Create reads the stack with the given name.
func (p *engineProvider) Create(ctx context.Context, req *pulumirpc.CreateRequest) (*pulumirpc.CreateResponse, error) {
	name := req.GetProperties().GetFields()["name"].GetStringValue()
	outputs, err := p.stack(ctx, name)
	return &pulumirpc.CreateResponse{Id: name, Properties: outputs}, err
}

// Read reads the stack whose name is the id.
func (p *engineProvider) Read(ctx context.Context, req *pulumirpc.ReadRequest) (*pulumirpc.ReadResponse, error) {
	if err := supported(req.GetUrn()); err != nil {
		return nil, err
	}
	outputs, err := p.stack(ctx, req.GetId())
	return &pulumirpc.ReadResponse{Id: req.GetId(), Inputs: req.GetInputs(), Properties: outputs}, err
}

// Delete does nothing: the other stack stays.
func (*engineProvider) Delete(context.Context, *pulumirpc.DeleteRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// Cancel does nothing: all calls are short.
func (*engineProvider) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func supported(u string) error {
	if t := urn.URN(u).Type(); t != stackReference {
		return status.Errorf(codes.Unimplemented, "resources of type %s are not supported", t)
	}
	return nil
}

// stack returns the properties of a StackReference: the stack's outputs and the names of the secret ones.
func (p *engineProvider) stack(ctx context.Context, text string) (*structpb.Struct, error) {
	name, err := deployments.ParseStackName(text, p.session.update.StackName)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	outputs, err := p.visible(ctx, name)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "stack %s: %v", text, err)
	}
	var secret []resource.PropertyValue
	for _, key := range outputs.StableKeys() {
		if outputs[key].ContainsSecrets() {
			secret = append(secret, resource.NewProperty(string(key)))
		}
	}
	return plugin.MarshalProperties(resource.PropertyMap{
		"name": resource.NewProperty(text), "outputs": resource.NewProperty(outputs),
		"secretOutputNames": resource.NewProperty(secret),
	}, engineMarshal)
}

// visible returns the outputs of a stack that the update's caller may see now: secret ones only if the caller may read
// the stack's secrets. A stack that the caller may not see is reported as not found.
func (p *engineProvider) visible(ctx context.Context, name deployments.StackName) (resource.PropertyMap, error) {
	s, asked := p.session, p.session.request
	if asked.Authority != nil {
		now, err := s.store.CurrentAuthority(ctx, *asked.Authority)
		if errors.Is(err, statestore.ErrNotAllowed) {
			return nil, deployments.Errorf(deployments.CodeForbidden,
				"%w; run `deployctl up` with a token that may read it", err)
		}
		if err != nil {
			return nil, err
		}
		asked.Authority = &now
	}
	if !asked.MayRead(deployments.RoleViewer, name) {
		return nil, deployments.NoStack(name)
	}
	outputs, err := s.outputsOf(ctx, name)
	if err != nil || asked.MayRead(deployments.RoleDeployer, name) {
		return outputs, err
	}
	seen, hidden := resource.PropertyMap{}, []string{}
	for _, key := range outputs.StableKeys() {
		if outputs[key].ContainsSecrets() {
			hidden = append(hidden, string(key))
		} else {
			seen[key] = outputs[key]
		}
	}
	if len(hidden) > 0 {
		s.print(pluginhost.Message{Severity: diag.Warning, Text: fmt.Sprintf(
			"The outputs %s of the stack %s are secret and are left out: "+
				"%s may view that stack, but not read its secrets, which needs the role deployer.",
			strings.Join(hidden, ", "), name, s.request.Initiator)})
	}
	return seen, nil
}

// outputsOf returns the outputs of a stack of this service, from its current checkpoint.
func (s *session) outputsOf(ctx context.Context, name deployments.StackName) (resource.PropertyMap, error) {
	head, err := s.store.Head(ctx, name)
	if err != nil {
		return nil, err
	}
	checkpoint, err := s.store.Checkpoint(ctx, name, head.Version, s.request.Secrets)
	if err != nil {
		return nil, err
	}
	for _, r := range checkpoint.States() {
		if r.Type == resource.RootStackType && !r.Delete && r.Outputs.Ref != "" {
			return checkpoint.Values(r.Outputs.Ref)
		}
	}
	return resource.PropertyMap{}, nil
}
