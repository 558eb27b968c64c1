package monitor

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ExistsResource reports whether a provider finds a resource, in previews, too. Nothing of it is in the state.
func (m *Monitor) ExistsResource(
	ctx context.Context, req *pulumirpc.ExistsResourceRequest,
) (*pulumirpc.ExistsResourceResponse, error) {
	kind, err := token.ParseType(req.GetType())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	parent, err := urn.ParseOptional(req.GetParent())
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "parent of %s: %v", kind, err)
	}
	inputs, err := plugin.UnmarshalProperties(req.GetProperties(), m.unmarshalOptions(req.GetType()))
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "properties of %s: %v", kind, err)
	}
	switch req.GetId() {
	case "":
		return nil, status.Errorf(codes.InvalidArgument, "whether there is a %s without an id cannot be found out", kind)
	case plugin.UnknownStringValue:
		return &pulumirpc.ExistsResourceResponse{Unknown: true}, nil
	}
	p, err := m.request(token.Package(kind), req)
	if err != nil {
		return nil, err
	}
	ref, err := m.provider(ctx, req.GetProvider(), p)
	if err != nil {
		return nil, err
	}
	provider, err := m.configured(ctx, ref, p.extension)
	if err != nil {
		return nil, err
	}
	u := m.existingURN(parent, kind)
	found, err := pluginhost.Await(ctx, func() (plugin.ReadResponse, error) {
		return provider.Read(ctx, plugin.ReadRequest{
			URN: u, Name: u.Name(), Type: kind, ID: resource.ID(req.GetId()), Inputs: properties.WithoutOutputs(inputs),
		})
	})
	if err != nil {
		return nil, status.Errorf(codes.Unknown, "whether %s %s exists: %s", kind, req.GetId(), pluginhost.ErrorText(err))
	}
	// A provider whose configuration is not known yet answers without a call, and with nothing.
	unknown := found.Outputs != nil && len(found.Outputs) == 0
	return &pulumirpc.ExistsResourceResponse{Exists: found.Outputs != nil && !unknown, Unknown: unknown}, nil
}

// existingURN names a resource that is only asked for: providers want a URN for their logs. It is as in Pulumi's.
func (m *Monitor) existingURN(parent urn.URN, kind tokens.Type) urn.URN {
	above := tokens.Type("")
	if parent != "" && parent.QualifiedType() != resource.RootStackType {
		above = parent.QualifiedType()
	}
	return urn.New(tokens.QName(m.goal.Stack), tokens.PackageName(m.goal.Project), above, kind,
		fmt.Sprintf("__exists__%d", m.asked.Add(1)))
}
