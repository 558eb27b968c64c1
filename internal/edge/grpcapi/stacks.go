package grpcapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"runtime/debug"
	"slices"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

type stacks struct {
	api.UnsafeStacksServer // a method without a handler does not compile
	service                deployments.Service
}

func (s *stacks) CreateStack(ctx context.Context, m *api.CreateStackRequest) (*api.CreateStackResponse, error) {
	return &api.CreateStackResponse{}, s.service.CreateStack(ctx, wire.ToStack(m.GetStack()), m.GetTags())
}

func (s *stacks) RecreateStack(
	ctx context.Context, m *api.RecreateStackRequest,
) (*api.RecreateStackResponse, error) {
	return &api.RecreateStackResponse{}, s.service.RecreateStack(ctx, callerOf(ctx), wire.ToStack(m.GetStack()),
		m.GetIdentity())
}

func (s *stacks) ListStacks(ctx context.Context, m *api.ListStacksRequest) (*api.ListStacksResponse, error) {
	list, err := Visible{s.service, callerOf(ctx)}.ListStacks(ctx, m.GetOrganization(), m.GetProject())
	return &api.ListStacksResponse{Stacks: wire.FromStackInfos(list)}, err
}

// ListStatuses reads nothing of what the caller may not see, and names none of it as the next.
func (s *stacks) ListStatuses(ctx context.Context, m *api.ListStatusesRequest) (*api.ListStatusesResponse, error) {
	page, err := s.service.Statuses(ctx, callerOf(ctx), wire.ToStatusQuery(m))
	return wire.FromStatusPage(page), err
}

func (s *stacks) GetStack(ctx context.Context, m *api.GetStackRequest) (*api.GetStackResponse, error) {
	info, err := s.service.Stack(ctx, wire.ToStack(m.GetStack()))
	return &api.GetStackResponse{Stack: wire.FromStackInfo(info)}, err
}

func (s *stacks) RemoveStack(ctx context.Context, m *api.RemoveStackRequest) (*api.RemoveStackResponse, error) {
	return &api.RemoveStackResponse{}, s.service.RemoveStack(ctx, wire.ToStack(m.GetStack()), m.GetForce())
}

func (s *stacks) RenameStack(ctx context.Context, m *api.RenameStackRequest) (*api.RenameStackResponse, error) {
	return &api.RenameStackResponse{}, s.service.RenameStack(ctx, deployments.RenameRequest{
		From: wire.ToStack(m.GetFrom()), To: wire.ToStack(m.GetTo()), Initiator: initiatorOf(ctx, m.GetInitiator()),
	})
}

func (s *stacks) ChangeTags(ctx context.Context, m *api.ChangeTagsRequest) (*api.ChangeTagsResponse, error) {
	return &api.ChangeTagsResponse{}, s.service.ChangeTags(ctx, wire.ToStack(m.GetStack()), m.GetSet(), m.GetRemoved())
}

func (s *stacks) TagStack(ctx context.Context, m *api.TagStackRequest) (*api.TagStackResponse, error) {
	return &api.TagStackResponse{}, s.service.TagStack(ctx, wire.ToStack(m.GetStack()), m.GetTags())
}

func (s *stacks) Export(m *api.ExportRequest, stream api.Stacks_ExportServer) error {
	deployment, err := s.service.Export(stream.Context(), wire.ToStack(m.GetStack()), int(m.GetVersion()),
		wire.ToSecrets(m.GetSecrets()), m.GetShowSecrets())
	if err != nil {
		return err
	}
	parts, err := rawjson.With(apitype.UntypedDeployment{Version: deployment.Version, Features: deployment.Features},
		"deployment", deployment.Deployment)
	if err != nil {
		return err
	}
	for _, part := range parts {
		for chunk := range slices.Chunk(part, chunkSize) {
			if err := stream.Send(&api.ExportResponse{Chunk: chunk}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *stacks) ExportRaw(m *api.ExportRawRequest, stream api.Stacks_ExportRawServer) error {
	archive := bufio.NewWriterSize(sentChunks(func(chunk []byte) error {
		return stream.Send(&api.ExportRawResponse{Chunk: chunk})
	}), chunkSize)
	if err := s.service.ExportRaw(stream.Context(), wire.ToStack(m.GetStack()), archive); err != nil {
		return err
	}
	return archive.Flush()
}

// sentChunks sends what is written in chunks, which it copies: what has given up sending one may still read it.
type sentChunks func(chunk []byte) error

func (send sentChunks) Write(p []byte) (n int, err error) {
	for chunk := range slices.Chunk(p, chunkSize) {
		if err := send(slices.Clone(chunk)); err != nil {
			return n, err
		}
		n += len(chunk)
	}
	return n, nil
}

func (s *stacks) Import(stream api.Stacks_ImportServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	text, err := gather(first.GetSize(), first.GetChunk(), func() ([]byte, error) {
		m, err := stream.Recv()
		return m.GetChunk(), err
	})
	if err != nil {
		return err
	}
	if err := deployments.CheckUTF8("the deployment", text); err != nil {
		return err
	}
	var deployment apitype.UntypedDeployment
	if err := rawjson.Unmarshal(text, &deployment); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "this is not a deployment: %w", err)
	}
	version, err := s.service.Import(stream.Context(), deployments.ImportRequest{
		Stack: wire.ToStack(first.GetStack()), Deployment: deployment, Secrets: wire.ToSecrets(first.GetSecrets()),
		Forget: first.GetForget(), BaseVersion: wire.ToVersion(first.BaseVersion),
		Initiator: initiatorOf(stream.Context(), first.GetInitiator()),
	})
	if err != nil {
		return err
	}
	return stream.SendAndClose(&api.ImportResponse{Version: int64(version)})
}

func (s *stacks) Restore(ctx context.Context, m *api.RestoreRequest) (*api.RestoreResponse, error) {
	version, err := s.service.Restore(ctx, deployments.RestoreRequest{
		Stack: wire.ToStack(m.GetStack()), Version: int(m.GetVersion()), Secrets: wire.ToSecrets(m.GetSecrets()),
		Forget:    m.GetForget(),
		Initiator: initiatorOf(ctx, m.GetInitiator()),
	})
	return &api.RestoreResponse{Version: int64(version)}, err
}

func (s *stacks) EditState(ctx context.Context, m *api.EditStateRequest) (*api.EditStateResponse, error) {
	request := wire.ToEdit(m)
	request.Initiator = initiatorOf(ctx, request.Initiator)
	edited, err := s.service.EditState(ctx, request)
	return &api.EditStateResponse{Version: int64(edited.Version), Changes: edited.Changes}, err
}

func (s *stacks) MoveState(ctx context.Context, m *api.MoveStateRequest) (*api.MoveStateResponse, error) {
	request := wire.ToMove(m)
	request.Initiator = initiatorOf(ctx, request.Initiator)
	moved, err := s.service.MoveState(ctx, request)
	return &api.MoveStateResponse{
		FromVersion: int64(moved.FromVersion), ToVersion: int64(moved.ToVersion), Changes: moved.Changes,
	}, err
}

func (s *stacks) Recover(ctx context.Context, m *api.RecoverRequest) (*api.RecoverResponse, error) {
	info, err := s.service.Recover(ctx, deployments.RecoverRequest{
		Stack: wire.ToStack(m.GetStack()), Discard: m.GetDiscard(),
	})
	return &api.RecoverResponse{Update: wire.FromInfo(info)}, err
}

func (s *stacks) History(ctx context.Context, m *api.HistoryRequest) (*api.HistoryResponse, error) {
	list, err := s.service.History(ctx, wire.ToStack(m.GetStack()), int(m.GetLimit()))
	return &api.HistoryResponse{Updates: wire.FromInfos(list)}, err
}

func (s *stacks) Encrypt(ctx context.Context, m *api.EncryptRequest) (*api.EncryptResponse, error) {
	sealed, err := s.service.Encrypt(ctx, wire.ToStack(m.GetStack()), m.GetPlain())
	return &api.EncryptResponse{Sealed: sealed}, err
}

func (s *stacks) Decrypt(ctx context.Context, m *api.DecryptRequest) (*api.DecryptResponse, error) {
	plain, err := s.service.Decrypt(ctx, wire.ToStack(m.GetStack()), m.GetSealed())
	return &api.DecryptResponse{Plain: plain}, err
}

// tidy returns freed memory to the system. It is called before and after a large content is received, so that two
// buffers are never resident together.
func tidy(size int64) {
	if size >= largeContent {
		debug.FreeOSMemory()
	}
}

// largeContent is the size from which that is worth its time.
const largeContent = 64 << 20

// sealRoom is what a content has behind its end, so that the store can seal it where it is.
const sealRoom = 64

// gather joins the chunks of a stream, up to MaxContent. Size is what its first message says of the whole, or 0.
func gather(size int64, first []byte, next func() ([]byte, error)) ([]byte, error) {
	tooLarge := deployments.Errorf(deployments.CodeInvalid, "this is larger than %d MiB, which is the most that the "+
		"service takes", MaxContent>>20)
	if size > MaxContent {
		return nil, tooLarge
	}
	var content []byte
	for chunk := first; ; {
		if len(content)+len(chunk) > MaxContent {
			return nil, tooLarge
		}
		if size > 0 && int64(len(content)+len(chunk)) > size {
			return nil, deployments.Errorf(deployments.CodeInvalid,
				"more than the %d bytes were sent that the call began with: it changed while it was read; try again",
				size)
		}
		if need := int64(len(content) + len(chunk)); need+sealRoom > int64(cap(content)) && len(content) > 0 {
			tidy(max(size, need))
			// the announced size is reserved at the second chunk only: to announce a size must not allocate it
			content = slices.Grow(content, int(max(size, need)-int64(len(content)))+sealRoom)
		}
		content = append(content, chunk...)
		var err error
		if chunk, err = next(); errors.Is(err, io.EOF) {
			return content, nil
		} else if err != nil {
			return nil, err
		}
	}
}
