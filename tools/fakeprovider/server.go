package fakeprovider

import (
	"context"
	"net/url"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// raw is the framework's server with what the framework leaves out.
type raw struct {
	rpc.ResourceProviderServer
	fake *fake
}

// Check takes the seed and the autonaming past the framework.
func (r *raw) Check(ctx context.Context, req *rpc.CheckRequest) (*rpc.CheckResponse, error) {
	return r.ResourceProviderServer.Check(context.WithValue(ctx, seedKey{}, req), req)
}

// Diff leaves the comparison of what is opaque to the engine, which the framework cannot say.
func (r *raw) Diff(ctx context.Context, req *rpc.DiffRequest) (*rpc.DiffResponse, error) {
	if kinds[resource.URN(req.GetUrn()).Type()].opaque {
		return &rpc.DiffResponse{Changes: rpc.DiffResponse_DIFF_UNKNOWN}, nil
	}
	return r.ResourceProviderServer.Diff(ctx, req)
}

// List lists the things of a type, in one page. A query for a urn narrows it to the Tagged that carry that.
func (r *raw) List(req *rpc.ListRequest, stream grpc.ServerStreamingServer[rpc.ListResponse]) error {
	k, ok := kinds[tokens.Type(req.GetToken())]
	if r.fake.habits {
		return errNoList
	}
	if !ok {
		return status.Errorf(codes.NotFound, "there is no resource type %s", req.GetToken())
	}
	query := url.Values{}
	if urn := req.GetQuery().GetFields()[urnTag].GetStringValue(); urn != "" {
		query.Set("tag."+urnTag, urn)
	}
	ctx, cancel := r.fake.within(stream.Context(), 0)
	defer cancel()
	all, err := r.fake.list(ctx, k.cloud, query)
	if err != nil {
		return err
	}
	for _, o := range all {
		result := &rpc.ListResponse_Result{Id: o.ID, Name: o.Name}
		if err := stream.Send(&rpc.ListResponse{Response: &rpc.ListResponse_Result_{Result: result}}); err != nil {
			return err
		}
	}
	return nil
}
