package wire

import (
	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
)

// FromGrant writes a grant.
func FromGrant(g deployments.Grant) *api.Grant {
	return &api.Grant{Role: string(g.Role), Organization: g.Organization, Stacks: g.Stacks}
}

// ToGrant reads a grant.
func ToGrant(m *api.Grant) deployments.Grant {
	return deployments.Grant{Role: deployments.Role(m.GetRole()), Organization: m.GetOrganization(),
		Stacks: m.GetStacks()}
}

func fromGrantPointer(g *deployments.Grant) *api.Grant {
	if g == nil {
		return nil
	}
	return FromGrant(*g)
}

func toGrantPointer(m *api.Grant) *deployments.Grant {
	if m == nil {
		return nil
	}
	g := ToGrant(m)
	return &g
}

func fromGrants(list []deployments.Grant) *api.GrantList {
	return &api.GrantList{Grants: each(list, FromGrant)}
}

func toGrants(m *api.GrantList) []deployments.Grant { return each(m.GetGrants(), ToGrant) }

// FromNewToken writes what a token is to be.
func FromNewToken(t deployments.Token) *api.CreateTokenRequest {
	return &api.CreateTokenRequest{Name: t.Name, Member: t.Member, Organization: t.Organization,
		Grant: fromGrantPointer(t.Grant), Expires: fromTime(t.Expires)}
}

// ToNewToken reads what a token is to be.
func ToNewToken(m *api.CreateTokenRequest) deployments.Token {
	return deployments.Token{Name: m.GetName(), Member: m.GetMember(), Organization: m.GetOrganization(),
		Grant: toGrantPointer(m.GetGrant()), Expires: toTime(m.GetExpires())}
}

// FromDerivedToken writes what a token is to be that is made from the caller's.
func FromDerivedToken(t deployments.Token) *api.DeriveTokenRequest {
	return &api.DeriveTokenRequest{Name: t.Name, Expires: fromTime(t.Expires)}
}

// ToDerivedToken reads what a token is to be that is made from the caller's.
func ToDerivedToken(m *api.DeriveTokenRequest) deployments.Token {
	return deployments.Token{Name: m.GetName(), Expires: toTime(m.GetExpires())}
}

// FromAccount writes what a caller learns about itself.
func FromAccount(a deployments.Account) *api.WhoAmIResponse {
	return &api.WhoAmIResponse{Token: a.Token, Member: a.Member, Identity: a.Identity, Organizations: a.Organizations,
		Grants: each(a.Grants, fromGrants)}
}

// ToAccount reads what a caller learns about itself.
func ToAccount(m *api.WhoAmIResponse) deployments.Account {
	return deployments.Account{Token: m.GetToken(), Member: m.GetMember(), Identity: m.GetIdentity(),
		Organizations: m.GetOrganizations(), Grants: each(m.GetGrants(), toGrants)}
}

// FromTokens writes a list of tokens.
func FromTokens(list []deployments.Token) []*api.Token {
	return each(list, func(t deployments.Token) *api.Token {
		return &api.Token{
			Name: t.Name, Member: t.Member, Organization: t.Organization, Grant: fromGrantPointer(t.Grant),
			Limit: each(t.Limit, fromGrants), Created: fromTime(t.Created), Expires: fromTime(t.Expires),
			Used: fromTime(t.Used), Damaged: t.Damaged, Origin: fromOrigin(t.Origin),
		}
	})
}

// ToTokens reads a list of tokens.
func ToTokens(list []*api.Token) []deployments.Token {
	return each(list, func(t *api.Token) deployments.Token {
		return deployments.Token{
			Name: t.GetName(), Member: t.GetMember(), Organization: t.GetOrganization(),
			Grant: toGrantPointer(t.GetGrant()), Limit: each(t.GetLimit(), toGrants), Created: toTime(t.GetCreated()),
			Expires: toTime(t.GetExpires()), Used: toTime(t.GetUsed()), Damaged: t.GetDamaged(),
			Origin: toOrigin(t.GetOrigin()),
		}
	})
}

// FromMembers writes a list of members.
func FromMembers(list []deployments.Member) []*api.Member {
	return each(list, func(m deployments.Member) *api.Member {
		return &api.Member{Organization: m.Organization, Name: m.Name, Grant: fromGrantPointer(m.Grant),
			Created: fromTime(m.Created), Teams: FromTeams(m.Teams), Damaged: m.Damaged}
	})
}

// ToMembers reads a list of members.
func ToMembers(list []*api.Member) []deployments.Member {
	return each(list, func(m *api.Member) deployments.Member {
		return deployments.Member{
			Organization: m.GetOrganization(), Name: m.GetName(), Grant: toGrantPointer(m.GetGrant()),
			Created: toTime(m.GetCreated()), Teams: ToTeams(m.GetTeams()), Damaged: m.GetDamaged(),
		}
	})
}

// FromAuditQuery writes a query of the audit log.
func FromAuditQuery(q deployments.AuditQuery) *api.ReadAuditRequest {
	return &api.ReadAuditRequest{Organization: q.Organization, Since: fromTime(q.Since), User: q.User, Stack: q.Stack,
		Until: fromTime(q.Until)}
}

// ToAuditQuery reads a query of the audit log.
func ToAuditQuery(m *api.ReadAuditRequest) deployments.AuditQuery {
	return deployments.AuditQuery{Organization: m.GetOrganization(), Since: toTime(m.GetSince()), User: m.GetUser(),
		Stack: m.GetStack(), Until: toTime(m.GetUntil())}
}

// FromAuditEntry writes an entry of the audit log.
func FromAuditEntry(e deployments.AuditEntry) *api.AuditEntry {
	return &api.AuditEntry{
		Time: fromTime(e.Time), Request: e.Request, Organization: e.Organization, Token: e.Token, Member: e.Member,
		Peer:   e.Peer,
		Method: e.Method, Stack: e.Stack, Subject: e.Subject, Secrets: e.Secrets, Code: string(e.Code), Error: e.Error,
		Repeated: int64(e.Repeated), Identity: e.Identity,
	}
}

// ToAuditEntry reads an entry of the audit log.
func ToAuditEntry(m *api.AuditEntry) deployments.AuditEntry {
	return deployments.AuditEntry{
		Time: toTime(m.GetTime()), Request: m.GetRequest(), Organization: m.GetOrganization(), Token: m.GetToken(),
		Member: m.GetMember(),
		Peer:   m.GetPeer(), Method: m.GetMethod(), Stack: m.GetStack(), Subject: m.GetSubject(),
		Secrets: m.GetSecrets(),
		Code:    deployments.Code(m.GetCode()), Error: m.GetError(), Repeated: int(m.GetRepeated()),
		Identity: m.GetIdentity(),
	}
}
