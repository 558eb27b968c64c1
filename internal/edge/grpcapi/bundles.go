package grpcapi

import (
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

type bundles struct {
	api.UnsafeBundlesServer // a method without a handler does not compile
	service                 deployments.Bundles
}

func (b *bundles) Missing(ctx context.Context, m *api.MissingRequest) (*api.MissingResponse, error) {
	digests, err := b.service.Missing(ctx, wire.ToStack(m.GetStack()), wire.ToManifest(m.GetManifest()))
	return &api.MissingResponse{Digests: digests}, err
}

func (b *bundles) PutFile(stream api.Bundles_PutFileServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	content, err := gather(first.GetSize(), first.GetChunk(), func() ([]byte, error) {
		m, err := stream.Recv()
		return m.GetChunk(), err
	})
	if err != nil {
		return err
	}
	size := int64(len(content))
	err = b.service.PutFile(stream.Context(), wire.ToStack(first.GetStack()), first.GetDigest(), content)
	tidy(size)
	if err != nil {
		return err
	}
	return stream.SendAndClose(&api.PutFileResponse{})
}

func (b *bundles) PutManifest(ctx context.Context, m *api.PutManifestRequest) (*api.PutManifestResponse, error) {
	bundle, err := b.service.PutManifest(ctx, wire.ToStack(m.GetStack()), wire.ToManifest(m.GetManifest()))
	return &api.PutManifestResponse{Bundle: bundle}, err
}
