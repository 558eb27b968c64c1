package grpcapi

import (
	"context"
	"slices"
	"strings"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/grpcapi/wire"
)

// tokens shows and changes only the tokens that the caller administers: nobody gives, takes or sees more than they
// have.
type tokens struct {
	api.UnsafeTokensServer // a method without a handler does not compile
	service                deployments.Service
}

func (t *tokens) CreateToken(ctx context.Context, m *api.CreateTokenRequest) (*api.CreateTokenResponse, error) {
	token := wire.ToNewToken(m)
	mine, err := t.administered(ctx)
	if err != nil {
		return nil, err
	}
	if !mine(token) {
		return nil, deployments.Errorf(deployments.CodeForbidden,
			"such a token may do what this one does not administer: an admin of that organization, or of all, can "+
				"make it")
	}
	text, err := t.service.CreateToken(ctx, token)
	return &api.CreateTokenResponse{Text: text}, err
}

func (t *tokens) ListTokens(ctx context.Context, _ *api.ListTokensRequest) (*api.ListTokensResponse, error) {
	list, err := t.listed(ctx)
	return &api.ListTokensResponse{Tokens: wire.FromTokens(list)}, err
}

func (t *tokens) RemoveToken(ctx context.Context, m *api.RemoveTokenRequest) (*api.RemoveTokenResponse, error) {
	list, err := t.listed(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list, func(t deployments.Token) bool { return t.Name == m.GetName() }) {
		return nil, deployments.Errorf(deployments.CodeNotFound, "there is no token %s", m.GetName())
	}
	return &api.RemoveTokenResponse{}, t.service.RemoveToken(ctx, m.GetName())
}

func (t *tokens) listed(ctx context.Context) ([]deployments.Token, error) {
	list, err := t.service.ListTokens(ctx)
	if err != nil {
		return nil, err
	}
	mine, err := t.administered(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(t deployments.Token) bool { return !mine(t) }), nil
}

// administered tells which tokens the caller administers.
func (t *tokens) administered(ctx context.Context) (func(deployments.Token) bool, error) {
	members, err := t.service.ListMembers(ctx)
	if err != nil {
		return nil, err
	}
	grants := map[string][]deployments.Grant{}
	for _, m := range members {
		grants[m.Name] = m.Grants
	}
	caller := callerOf(ctx)
	return func(token deployments.Token) bool {
		return caller.Covers(deployments.AuthorityOf(token, grants[token.Member]))
	}, nil
}

// members shows and changes only the grants that the caller administers.
type members struct {
	api.UnsafeMembersServer // a method without a handler does not compile
	service                 deployments.Service
}

func (s *members) GrantMember(ctx context.Context, m *api.GrantMemberRequest) (*api.GrantMemberResponse, error) {
	grant := wire.ToGrant(m.GetGrant())
	before, err := s.find(ctx, m.GetName())
	if err != nil {
		return nil, err
	}
	changed := append(slices.DeleteFunc(slices.Clone(before.Grants),
		func(g deployments.Grant) bool { return g.Organization != grant.Organization }), grant)
	if !callerOf(ctx).Administers(changed...) {
		return nil, deployments.Errorf(deployments.CodeForbidden,
			"this token does not administer all that is to be changed: an admin of the organization, or of all, can "+
				"do it")
	}
	return &api.GrantMemberResponse{}, s.service.GrantMember(ctx, m.GetName(), grant)
}

// find gives a member with every grant; the zero Member when there is none.
func (s *members) find(ctx context.Context, name string) (deployments.Member, error) {
	list, err := s.service.ListMembers(ctx)
	if i := slices.IndexFunc(list, func(m deployments.Member) bool { return m.Name == name }); i >= 0 {
		return list[i], err
	}
	return deployments.Member{}, err
}

func (s *members) ListMembers(ctx context.Context, _ *api.ListMembersRequest) (*api.ListMembersResponse, error) {
	list, err := s.service.ListMembers(ctx)
	caller := callerOf(ctx)
	var seen []deployments.Member
	for _, m := range list {
		m.Grants = slices.DeleteFunc(slices.Clone(m.Grants), func(g deployments.Grant) bool {
			return !caller.Administers(g)
		})
		if len(m.Grants) > 0 || m.Damaged != "" && caller.AdministersAll() {
			seen = append(seen, m)
		}
	}
	return &api.ListMembersResponse{Members: wire.FromMembers(seen)}, err
}

func (s *members) RemoveMember(ctx context.Context, m *api.RemoveMemberRequest) (*api.RemoveMemberResponse, error) {
	found, err := s.find(ctx, m.GetName())
	if err != nil {
		return nil, err
	}
	caller := callerOf(ctx)
	taken := slices.DeleteFunc(slices.Clone(found.Grants), func(g deployments.Grant) bool {
		return m.GetOrganization() != "" && g.Organization != m.GetOrganization()
	})
	switch {
	case len(taken) == 0 || !slices.ContainsFunc(found.Grants, func(g deployments.Grant) bool {
		return caller.Administers(g)
	}):
		return nil, deployments.Errorf(deployments.CodeNotFound, "there is no member %s with a role there", m.GetName())
	case !caller.Administers(taken...):
		return nil, deployments.Errorf(deployments.CodeForbidden,
			"%s has roles elsewhere, which this token does not administer: name your organization (--organization)",
			m.GetName())
	}
	return &api.RemoveMemberResponse{}, s.service.RemoveMember(ctx, m.GetName(), m.GetOrganization())
}

// audit shows only what is about the stacks and organizations that the caller administers.
type audit struct {
	api.UnsafeAuditServer // a method without a handler does not compile
	service               deployments.Service
}

// auditBatch is how many entries one message has.
const auditBatch = 200

func (a *audit) ReadAudit(m *api.ReadAuditRequest, stream api.Audit_ReadAuditServer) error {
	query := wire.ToAuditQuery(m)
	caller := callerOf(stream.Context())
	batch := &api.ReadAuditResponse{}
	send := func(e deployments.AuditEntry) error {
		if !sees(caller, e) {
			return nil
		}
		if batch.Entries = append(batch.Entries, wire.FromAuditEntry(e)); len(batch.Entries) < auditBatch {
			return nil
		}
		defer func() { batch = &api.ReadAuditResponse{} }()
		return stream.Send(batch)
	}
	if err := a.service.Audit(stream.Context(), query, send); err != nil {
		return err
	}
	return stream.Send(batch)
}

// sees reports whether a caller may see an entry of the audit log.
func sees(caller deployments.Caller, e deployments.AuditEntry) bool {
	project, stack, ok := strings.Cut(e.Stack, "/")
	if ok {
		return caller.May(admin, deployments.StackName{Organization: e.Organization, Project: project, Stack: stack})
	}
	about := deployments.Grant{Role: viewer, Organization: e.Organization}
	if e.Organization == "" {
		about.Organization = deployments.AnyOrganization
	}
	return caller.Administers(about)
}
