package monitor

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ReadResource reads an existing resource that the stack does not own.
func (m *Monitor) ReadResource(
	ctx context.Context, req *pulumirpc.ReadResourceRequest,
) (*pulumirpc.ReadResourceResponse, error) {
	resp, err := m.readResource(ctx, req)
	if err != nil {
		parent, _ := urn.ParseOptional(req.GetParent())
		return nil, m.refuse(ctx, err, engine.Refused{Type: tokens.Type(req.GetType()), Name: req.GetName(),
			Parent: parent})
	}
	return resp, nil
}

func (m *Monitor) readResource(
	ctx context.Context, req *pulumirpc.ReadResourceRequest,
) (*pulumirpc.ReadResourceResponse, error) {
	if err := m.refusedBefore(); err != nil {
		return nil, err
	}
	read, err := m.readRequested(ctx, req)
	if err != nil {
		return nil, err
	}
	defer m.registry.begin(read.Parent)()
	reply, err := m.call(ctx, func(epoch, seq int) deployments.Message {
		read.Epoch, read.Seq = epoch, seq
		return deployments.Message{ReadRequested: &read}
	})
	if err := m.replyError(reply, err); err != nil {
		return nil, err
	}
	if reply.Result != engine.ResultSuccess && !notTargeted(reply) {
		return nil, &endingError{status.Newf(codes.Internal, "resource %s %s could not be read", read.Type, read.Name)}
	}
	m.registry.put(reply.URN, registered{
		parent: read.Parent, custom: true, id: reply.ID, object: reply.Object, provider: read.Provider,
	})
	outputs, err := m.values.Decode(ctx, reply.Object)
	if err != nil {
		return nil, rpcError(err)
	}
	properties, err := plugin.MarshalProperties(outputs, plugin.MarshalOptions{
		Label: "outputs of " + string(reply.URN), KeepUnknowns: true,
		KeepSecrets: req.GetAcceptSecrets(), KeepResources: req.GetAcceptResources(),
		KeepByteString: req.GetAcceptsByteString(), WorkingDirectory: m.project.ProgramDir,
	})
	if err != nil {
		return nil, rpcError(err)
	}
	// Its result is always a success, because no SDK says whether it would see a failure: that is an error instead.
	return &pulumirpc.ReadResourceResponse{
		Urn: string(reply.URN), Properties: properties, Id: reply.ID, Unknown: notTargeted(reply),
	}, nil
}

func (m *Monitor) readRequested(ctx context.Context, req *pulumirpc.ReadResourceRequest) (engine.ReadRequested, error) {
	read := engine.ReadRequested{
		Type: tokens.Type(req.GetType()), Name: req.GetName(), ID: req.GetId(), Provider: req.GetProvider(),
		AdditionalSecretOutputs: req.GetAdditionalSecretOutputs(),
		SourcePosition:          m.places.position(req.GetSourcePosition()),
	}
	if err := token.CheckName(req.GetType(), read.Name); err != nil {
		return read, status.Error(codes.InvalidArgument, err.Error())
	}
	if _, err := token.ParseType(req.GetType()); err != nil {
		return read, status.Error(codes.InvalidArgument, err.Error())
	}
	var err error
	if read.Parent, err = urn.ParseOptional(req.GetParent()); err != nil {
		return read, status.Errorf(codes.InvalidArgument, "parent of %s: %v", read.Name, err)
	}
	deps, err := parseURNs("dependency of "+read.Name, req.GetDependencies())
	if err != nil {
		return read, err
	}
	read.Dependencies = properties.Sorted(deps)
	inputs, err := plugin.UnmarshalProperties(req.GetProperties(), m.unmarshalOptions(req.GetType()+" "+read.Name))
	if err != nil {
		return read, status.Errorf(codes.InvalidArgument, "inputs of %s %s: %v", read.Type, read.Name, err)
	}
	if read.Inputs, err = m.values.Encode(ctx, properties.WithoutOutputs(inputs)); err != nil {
		return read, rpcError(err)
	}
	if !token.IsProvider(read.Type) {
		p, err := m.request(token.Package(read.Type), req)
		if err != nil {
			return read, err
		}
		if read.Provider, err = m.provider(ctx, read.Provider, p); err != nil {
			return read, err
		}
		read.Extension = p.extension
	}
	asked := read
	asked.SourcePosition, asked.Inputs = "", engine.Bag{Digest: read.Inputs.Digest}
	asked.Extension = engine.Bag{Digest: read.Extension.Digest}
	read.Digest = m.digest(asked)
	return read, nil
}
