package client

import (
	"cmp"
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// CreateToken creates an access token; its text cannot be read again.
func (c *Client) CreateToken(ctx context.Context, t deployments.Token) (string, error) {
	m, err := once(ctx, c, c.tokens.CreateToken, wire.FromNewToken(t))
	return m.GetText(), err
}

// WhoAmI describes the holder of the client's token.
func (c *Client) WhoAmI(ctx context.Context, _ deployments.Caller) (deployments.Account, error) {
	m, err := repeat(ctx, c, c.tokens.WhoAmI, &api.WhoAmIRequest{})
	return wire.ToAccount(m), err
}

// ListTokens lists the access tokens that the caller administers.
func (c *Client) ListTokens(ctx context.Context) ([]deployments.Token, error) {
	m, err := repeat(ctx, c, c.tokens.ListTokens, &api.ListTokensRequest{})
	return wire.ToTokens(m.GetTokens()), err
}

// RemoveToken revokes a token.
func (c *Client) RemoveToken(ctx context.Context, name string) error {
	_, err := once(ctx, c, c.tokens.RemoveToken, &api.RemoveTokenRequest{Name: name})
	return err
}

// GrantMember creates a member of the grant's organization, or replaces a member's grant.
func (c *Client) GrantMember(ctx context.Context, name string, g deployments.Grant) error {
	_, err := repeat(ctx, c, c.members.GrantMember, &api.GrantMemberRequest{Name: name, Grant: wire.FromGrant(g)})
	return err
}

// ListMembers lists the members, with their grants where the caller is an admin.
func (c *Client) ListMembers(ctx context.Context) ([]deployments.Member, error) {
	m, err := repeat(ctx, c, c.members.ListMembers, &api.ListMembersRequest{})
	return wire.ToMembers(m.GetMembers()), err
}

// RemoveMember removes a member of an organization.
func (c *Client) RemoveMember(ctx context.Context, name, organization string) error {
	_, err := once(ctx, c, c.members.RemoveMember, &api.RemoveMemberRequest{Name: name, Organization: organization})
	return err
}

// Audit sends the entries of the audit log that the query selects. It does not continue after a connection that is lost
// once it has begun.
func (c *Client) Audit(ctx context.Context, q deployments.AuditQuery, fn func(deployments.AuditEntry) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	err := c.retryUntilReached(ctx, func(ctx context.Context) error {
		begun := false
		stream, err := c.audit.ReadAudit(ctx, wire.FromAuditQuery(q))
		if err != nil {
			return err
		}
		err = receive(stream.Recv, func(m *api.ReadAuditResponse) error {
			begun = true
			for _, e := range m.GetEntries() {
				if err := fn(wire.ToAuditEntry(e)); err != nil {
					return err
				}
			}
			return nil
		})
		if begun {
			failed, err = cutShort("the audit log", err), nil
		}
		return err
	})
	return cmp.Or(err, failed)
}
