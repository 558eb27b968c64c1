package client

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CreateStack creates an empty stack.
func (c *Client) CreateStack(ctx context.Context, s deployments.StackName, tags map[string]string) error {
	_, err := once(ctx, c, c.stacks.CreateStack, &api.CreateStackRequest{Stack: wire.FromStack(s), Tags: tags})
	return err
}

// RecreateStack creates an empty stack that has the identity of one that is gone. The service takes the caller from the
// token.
func (c *Client) RecreateStack(
	ctx context.Context, _ deployments.Caller, s deployments.StackName, identity string,
) error {
	_, err := once(ctx, c, c.stacks.RecreateStack, &api.RecreateStackRequest{Stack: wire.FromStack(s), Identity: identity})
	return err
}

// ListStacks lists the stacks of a project; an empty project means all.
func (c *Client) ListStacks(ctx context.Context, organization, project string) ([]deployments.StackInfo, error) {
	m, err := repeat(ctx, c, c.stacks.ListStacks, &api.ListStacksRequest{Organization: organization, Project: project})
	return wire.ToStackInfos(m.GetStacks()), err
}

// Statuses describes a page of stacks as an operator looks at them. The service takes the caller from the token. Of an
// older service's stacks only what ListStacks says is known, in one page.
func (c *Client) Statuses(
	ctx context.Context, _ deployments.Caller, q deployments.StatusQuery,
) (deployments.StatusPage, error) {
	m, err := repeat(ctx, c, c.stacks.ListStatuses, wire.FromStatusQuery(q))
	if lacks(err) {
		list, err := c.ListStacks(ctx, q.Organization, q.Project)
		page := deployments.StatusPage{Incomplete: "the service is older than this client: last results, drift and " +
			"schedules are not known"}
		for _, info := range list {
			page.Stacks = append(page.Stacks, deployments.StackStatus{StackInfo: info})
		}
		return page, err
	}
	return wire.ToStatusPage(m), err
}

// Stack describes a stack.
func (c *Client) Stack(ctx context.Context, s deployments.StackName) (deployments.StackInfo, error) {
	m, err := repeat(ctx, c, c.stacks.GetStack, &api.GetStackRequest{Stack: wire.FromStack(s)})
	return wire.ToStackInfo(m.GetStack()), err
}

// RemoveStack removes a stack and its history.
func (c *Client) RemoveStack(ctx context.Context, s deployments.StackName, force bool) error {
	_, err := once(ctx, c, c.stacks.RemoveStack, &api.RemoveStackRequest{Stack: wire.FromStack(s), Force: force})
	return err
}

// RenameStack renames a stack.
func (c *Client) RenameStack(ctx context.Context, r deployments.RenameRequest) error {
	_, err := once(ctx, c, c.stacks.RenameStack, &api.RenameStackRequest{
		From: wire.FromStack(r.From), To: wire.FromStack(r.To), Initiator: r.Initiator,
	})
	return err
}

// ChangeTags sets tags of the stack, removes some, and keeps its others; with an older service not those that another
// call sets at the same time.
func (c *Client) ChangeTags(
	ctx context.Context, s deployments.StackName, set map[string]string, removed []string,
) error {
	_, err := repeat(ctx, c, c.stacks.ChangeTags,
		&api.ChangeTagsRequest{Stack: wire.FromStack(s), Set: set, Removed: removed})
	if !lacks(err) {
		return err
	}
	info, err := c.Stack(ctx, s)
	if err != nil {
		return err
	}
	tags := map[string]string{}
	maps.Copy(tags, info.Tags)
	maps.Copy(tags, set)
	for _, tag := range removed {
		delete(tags, tag)
	}
	return c.TagStack(ctx, s, tags)
}

// lacks reports whether a call failed because the service is older and does not have its method.
func lacks(err error) bool {
	return status.Code(err) == codes.Unimplemented && !wire.Answered(err)
}

// TagStack replaces the stack's tags.
func (c *Client) TagStack(ctx context.Context, s deployments.StackName, tags map[string]string) error {
	_, err := repeat(ctx, c, c.stacks.TagStack, &api.TagStackRequest{Stack: wire.FromStack(s), Tags: tags})
	return err
}

// Export returns a stored deployment.
func (c *Client) Export(
	ctx context.Context, s deployments.StackName, version int, secrets deployments.SecretsProvider, showSecrets bool,
) (apitype.UntypedDeployment, error) {
	text, err := c.exported(ctx, &api.ExportRequest{
		Stack: wire.FromStack(s), Version: int64(version), Secrets: wire.FromSecrets(secrets), ShowSecrets: showSecrets,
	})
	var deployment apitype.UntypedDeployment
	if err != nil {
		return deployment, err
	}
	if err := json.Unmarshal(text, &deployment); err != nil {
		return deployment, deployments.Errorf(deployments.CodeFormat,
			"the service sent a deployment that cannot be read: %w", err)
	}
	return deployment, nil
}

// ExportRaw writes an archive of the objects that the stack's state is made of.
func (c *Client) ExportRaw(ctx context.Context, s deployments.StackName, to io.Writer) error {
	var failed error // once something was written, which cannot be taken back
	err := c.retryUntilReached(ctx, func(ctx context.Context) error {
		begun := false
		stream, err := c.stacks.ExportRaw(ctx, &api.ExportRawRequest{Stack: wire.FromStack(s)})
		if err != nil {
			return err
		}
		err = receive(stream.Recv, func(m *api.ExportRawResponse) error {
			begun = true
			_, err := to.Write(m.GetChunk())
			return err
		})
		if begun {
			failed, err = cutShort("the archive", err), nil
		}
		return err
	})
	return cmp.Or(err, failed)
}

// cutShort is the error of a stream of which a part was handed on, which cannot be taken back.
func cutShort(what string, err error) error {
	err = wire.ToError(err)
	if deployments.CodeOf(err) != deployments.CodeUnavailable || wire.Answered(err) {
		return err
	}
	return deployments.Errorf(deployments.CodeUnavailable, "the connection to the service was lost, and %s is not "+
		"complete; repeat the command: %w", what, err)
}

// Import replaces the stack's deployment.
func (c *Client) Import(ctx context.Context, r deployments.ImportRequest) (int, error) {
	text, err := json.Marshal(r.Deployment)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var m *api.ImportResponse
	err = c.sentOnce(ctx, func(ctx context.Context) (err error) {
		m, err = c.sendImport(ctx, r, text)
		return err
	})
	return int(m.GetVersion()), err
}

func (c *Client) sendImport(
	ctx context.Context, r deployments.ImportRequest, text []byte,
) (*api.ImportResponse, error) {
	stream, err := c.stacks.Import(ctx)
	if err != nil {
		return nil, err
	}
	next := &api.ImportRequest{
		Stack: wire.FromStack(r.Stack), Secrets: wire.FromSecrets(r.Secrets), Forget: r.Forget,
		Initiator: r.Initiator, Size: int64(len(text)), BaseVersion: wire.FromVersion(r.BaseVersion),
	}
	for chunk := range chunks(text) {
		next.Chunk = chunk
		if stream.Send(next) != nil {
			break // the response says why
		}
		next = &api.ImportRequest{}
	}
	return stream.CloseAndRecv()
}

// Restore makes the deployment of an earlier version the stack's next one.
func (c *Client) Restore(ctx context.Context, r deployments.RestoreRequest) (int, error) {
	m, err := once(ctx, c, c.stacks.Restore, &api.RestoreRequest{
		Stack: wire.FromStack(r.Stack), Version: int64(r.Version), Secrets: wire.FromSecrets(r.Secrets),
		Forget: r.Forget, Initiator: r.Initiator,
	})
	return int(m.GetVersion()), err
}

// EditState changes single resources of the stack's state.
func (c *Client) EditState(ctx context.Context, r deployments.EditRequest) (deployments.Edited, error) {
	m, err := once(ctx, c, c.stacks.EditState, wire.FromEdit(r))
	return deployments.Edited{Version: int(m.GetVersion()), Changes: m.GetChanges()}, err
}

// MoveState moves resources from the state of a stack to that of another.
func (c *Client) MoveState(ctx context.Context, r deployments.MoveRequest) (deployments.Moved, error) {
	m, err := once(ctx, c, c.stacks.MoveState, wire.FromMove(r))
	return deployments.Moved{
		FromVersion: int(m.GetFromVersion()), ToVersion: int(m.GetToVersion()), Changes: m.GetChanges(),
	}, err
}

// Recover ends the active update in place of its closed workflow.
func (c *Client) Recover(ctx context.Context, r deployments.RecoverRequest) (deployments.UpdateInfo, error) {
	m, err := repeat(ctx, c, c.stacks.Recover, &api.RecoverRequest{Stack: wire.FromStack(r.Stack), Discard: r.Discard})
	return wire.ToInfo(m.GetUpdate()), err
}

// History lists a stack's updates, latest first.
func (c *Client) History(ctx context.Context, s deployments.StackName, limit int) ([]deployments.UpdateInfo, error) {
	m, err := repeat(ctx, c, c.stacks.History, &api.HistoryRequest{Stack: wire.FromStack(s), Limit: int32(limit)})
	return wire.ToInfos(m.GetUpdates()), err
}

// Encrypt encrypts texts with the service's own key for the stack.
func (c *Client) Encrypt(ctx context.Context, s deployments.StackName, plain []string) ([]string, error) {
	m, err := repeat(ctx, c, c.stacks.Encrypt, &api.EncryptRequest{Stack: wire.FromStack(s), Plain: plain})
	return m.GetSealed(), err
}

// Decrypt returns the texts that Encrypt encrypted.
func (c *Client) Decrypt(ctx context.Context, s deployments.StackName, sealed []string) ([]string, error) {
	m, err := repeat(ctx, c, c.stacks.Decrypt, &api.DecryptRequest{Stack: wire.FromStack(s), Sealed: sealed})
	return m.GetPlain(), err
}

// exported receives the text of a deployment.
func (c *Client) exported(ctx context.Context, r *api.ExportRequest) (text []byte, err error) {
	err = c.retryUntilReached(ctx, func(ctx context.Context) error {
		text = nil
		stream, err := c.stacks.Export(ctx, r)
		if err != nil {
			return err
		}
		return receive(stream.Recv, func(m *api.ExportResponse) error {
			text = append(text, m.GetChunk()...)
			return nil
		})
	})
	return text, err
}
