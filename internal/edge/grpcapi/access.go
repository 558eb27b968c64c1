package grpcapi

import (
	"context"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

type tokens struct {
	api.UnsafeTokensServer // a method without a handler does not compile
	service                Service
}

func (t *tokens) of(ctx context.Context) Administered { return Administered{t.service, callerOf(ctx)} }

func (t *tokens) CreateToken(ctx context.Context, m *api.CreateTokenRequest) (*api.CreateTokenResponse, error) {
	text, err := t.of(ctx).CreateToken(ctx, wire.ToNewToken(m))
	return &api.CreateTokenResponse{Text: text}, err
}

func (t *tokens) DeriveToken(ctx context.Context, m *api.DeriveTokenRequest) (*api.DeriveTokenResponse, error) {
	text, err := t.of(ctx).DeriveToken(ctx, wire.ToDerivedToken(m))
	return &api.DeriveTokenResponse{Text: text}, err
}

func (t *tokens) ListTokens(ctx context.Context, _ *api.ListTokensRequest) (*api.ListTokensResponse, error) {
	list, err := t.of(ctx).ListTokens(ctx)
	return &api.ListTokensResponse{Tokens: wire.FromTokens(list)}, err
}

func (t *tokens) RemoveToken(ctx context.Context, m *api.RemoveTokenRequest) (*api.RemoveTokenResponse, error) {
	return &api.RemoveTokenResponse{}, t.of(ctx).RemoveToken(ctx, m.GetName())
}

func (t *tokens) WhoAmI(ctx context.Context, _ *api.WhoAmIRequest) (*api.WhoAmIResponse, error) {
	a, err := t.service.WhoAmI(ctx, callerOf(ctx))
	return wire.FromAccount(a), err
}

type members struct {
	api.UnsafeMembersServer // a method without a handler does not compile
	service                 Service
}

func (s *members) of(ctx context.Context) Administered { return Administered{s.service, callerOf(ctx)} }

func (s *members) GrantMember(ctx context.Context, m *api.GrantMemberRequest) (*api.GrantMemberResponse, error) {
	return &api.GrantMemberResponse{}, s.of(ctx).GrantMember(ctx, m.GetName(), wire.ToGrant(m.GetGrant()))
}

func (s *members) ListMembers(ctx context.Context, _ *api.ListMembersRequest) (*api.ListMembersResponse, error) {
	list, err := s.of(ctx).ListMembers(ctx)
	return &api.ListMembersResponse{Members: wire.FromMembers(list)}, err
}

func (s *members) RemoveMember(ctx context.Context, m *api.RemoveMemberRequest) (*api.RemoveMemberResponse, error) {
	return &api.RemoveMemberResponse{}, s.of(ctx).RemoveMember(ctx, m.GetName(), m.GetOrganization())
}

type audit struct {
	api.UnsafeAuditServer // a method without a handler does not compile
	service               Service
}

// auditBatch is how many entries one message has.
const auditBatch = 200

func (a *audit) ReadAudit(m *api.ReadAuditRequest, stream api.Audit_ReadAuditServer) error {
	batch := &api.ReadAuditResponse{}
	send := func(e deployments.AuditEntry) error {
		if batch.Entries = append(batch.Entries, wire.FromAuditEntry(e)); len(batch.Entries) < auditBatch {
			return nil
		}
		defer func() { batch = &api.ReadAuditResponse{} }()
		return stream.Send(batch)
	}
	of := Administered{a.service, callerOf(stream.Context())}
	if err := of.Audit(stream.Context(), wire.ToAuditQuery(m), send); err != nil {
		return err
	}
	return stream.Send(batch)
}
