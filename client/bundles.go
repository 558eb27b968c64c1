package client

import (
	"context"
	"iter"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

const chunkSize = 1 << 20

// chunks splits content into parts that fit a message; empty content is one empty part.
func chunks(content []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			n := min(len(content), chunkSize)
			if !yield(content[:n]) || n == len(content) {
				return
			}
			content = content[n:]
		}
	}
}

// Missing returns which files the service does not have yet.
func (c *Client) Missing(ctx context.Context, s deployments.StackName, m deployments.Manifest) ([]string, error) {
	answer, err := repeat(ctx, c, c.bundles.Missing, &api.MissingRequest{Stack: wire.FromStack(s),
		Manifest: wire.FromManifest(m)})
	return answer.GetDigests(), err
}

// PutFile stores one file's content under its digest.
func (c *Client) PutFile(ctx context.Context, s deployments.StackName, digest string, content []byte) error {
	return c.retryUntilReached(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := c.bundles.PutFile(ctx)
		if err != nil {
			return err
		}
		m := &api.PutFileRequest{Stack: wire.FromStack(s), Digest: digest, Size: int64(len(content))}
		for chunk := range chunks(content) {
			m.Chunk = chunk
			if stream.Send(m) != nil {
				break // the response says why
			}
			m = &api.PutFileRequest{}
		}
		_, err = stream.CloseAndRecv()
		return err
	})
}

// PutManifest stores a manifest and returns the bundle's digest.
func (c *Client) PutManifest(ctx context.Context, s deployments.StackName, m deployments.Manifest) (string, error) {
	answer, err := repeat(ctx, c, c.bundles.PutManifest, &api.PutManifestRequest{Stack: wire.FromStack(s),
		Manifest: wire.FromManifest(m)})
	return answer.GetBundle(), err
}
