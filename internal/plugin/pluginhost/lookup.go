package pluginhost

import (
	"context"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// longestOwner is how long the name of an owner may be, in bytes; a longer one is left out.
const longestOwner = 1000

// Found is the answer of a Lookup. The values of the resource are set only if it is Owned, and its ID and, for people,
// its Owner also if it is Unowned.
type Found struct {
	Ownership provider.Ownership
	Owner     string
	plugin.ReadResult
}

// Lookup asks a provider for the resource that a lost create with these inputs would have created. It is a Read without
// an id, which only types with provider.SettleByRead support. If the answer has no Ownership, the provider does not
// support it, and the result is Undecidable.
func (p *Provider) Lookup(ctx context.Context, req plugin.ReadRequest) (Found, error) {
	inputs, err := plugin.MarshalProperties(req.Inputs, plugin.MarshalOptions{KeepSecrets: true,
		ElideAssetContents: true})
	if err != nil {
		return Found{}, err
	}
	var trailer metadata.MD
	resp, err := p.wire.Read(context.WithoutCancel(ctx), &pulumirpc.ReadRequest{
		Urn: string(req.URN), Name: req.URN.Name(), Type: string(req.URN.Type()), Inputs: inputs, Timeout: req.Timeout,
	}, grpc.Trailer(&trailer))
	if err != nil {
		return Found{}, rpcerror.Convert(err)
	}
	found := Found{Ownership: provider.Undecidable}
	if said := trailer.Get(provider.OwnershipTrailer); len(said) == 1 {
		found.Ownership = provider.Ownership(said[0])
	}
	if owner := trailer.Get(provider.OwnerTrailer); len(owner) == 1 && len(owner[0]) <= longestOwner {
		found.Owner = owner[0]
	}
	if found.Ownership == provider.Unowned {
		found.ID = resource.ID(resp.GetId())
	}
	if found.Ownership != provider.Owned {
		return found, nil
	}
	found.ID, found.RefreshBeforeUpdate = resource.ID(resp.GetId()), resp.GetRefreshBeforeUpdate()
	found.Outputs, err = plugin.UnmarshalProperties(resp.GetProperties(), plugin.MarshalOptions{
		RejectUnknowns: true, KeepSecrets: true, KeepResources: true, KeepByteString: true,
	})
	return found, err
}
