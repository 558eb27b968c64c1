package deployments

import "context"

// Tokens manages access tokens, which are hashed at rest. Callers see and change only tokens whose grants they
// administer.
type Tokens interface {
	// CreateToken makes a token and returns its text. Name, Member, Organization, Grant and Expires say what it is. Needs
	// RoleAdmin. CodeExists: there is a token of this name. CodeNotFound: there is no such member. CodeForbidden: also
	// when the token could do what the caller does not administer, or the member is of an organization of others.
	CreateToken(ctx context.Context, t Token) (string, error)
	// DeriveToken makes a token that may do what the caller's may, as long as that lasts, and returns its text. The name
	// of the caller's token and a dot come before its name. Needs RoleViewer. CodeForbidden: also when the caller's was
	// itself derived. CodeExists: there is a token of this name. CodeConflict: too many were made.
	DeriveToken(ctx context.Context, t Token) (string, error)
	// ListTokens describes the tokens, sorted by name. Needs RoleAdmin. Fails as every method does.
	ListTokens(ctx context.Context) ([]Token, error)
	// RemoveToken removes a token, which is refused from then on. Needs RoleAdmin. CodeNotFound: there is no such
	// token.
	RemoveToken(ctx context.Context, name string) error
	// WhoAmI describes the caller, whom the edge names: what a client passes is not sent. Needs RoleViewer. Fails as
	// every method does.
	WhoAmI(ctx context.Context, c Caller) (Account, error)
}

// Account is what a caller learns about itself.
type Account struct {
	Token    string `json:"token"`
	Member   string `json:"member,omitempty"`   // the token's owner
	Identity string `json:"identity,omitempty"` // the subject of the identity token for which the token was given
	// Grants are lists of which each has to allow what the caller does.
	Grants [][]Grant `json:"grants"`
	// Organizations are those that the grants name or, if a grant is for all, those that have stacks, and the default
	// one.
	Organizations []string `json:"organizations"`
}

// Name returns the name by which others know the caller.
func (a Account) Name() string { return Caller{Token: a.Token, Member: a.Member}.Name() }

// Members manages who has tokens. A member's tokens may do what the member may at the time. Callers see and change only
// grants that they administer.
type Members interface {
	// GrantMember makes a member of the grant's organization, or gives one the grant in the place of the one that they
	// have. Needs RoleAdmin. CodeForbidden: also when the caller does not administer all that the member would have.
	GrantMember(ctx context.Context, name string, g Grant) error
	// ListMembers describes the members, sorted by organization and name. Needs RoleAdmin. Fails as every method does.
	ListMembers(ctx context.Context) ([]Member, error)
	// RemoveMember removes a member of an organization, whose tokens are worthless then. Needs RoleAdmin. CodeNotFound:
	// there is no such member, or the caller does not administer all that they may do.
	RemoveMember(ctx context.Context, name, organization string) error
}

// Teams manages teams. Callers see and change only teams whose grants they administer.
type Teams interface {
	// GrantTeam makes a team in the grant's organization, or gives one another grant. Needs RoleAdmin. CodeForbidden:
	// also when the caller does not administer its grant, before or after.
	GrantTeam(ctx context.Context, name string, g Grant) error
	// ListTeams describes the teams, sorted by organization and name. Needs RoleAdmin. Fails as every method does.
	ListTeams(ctx context.Context) ([]Team, error)
	// RemoveTeam removes a team; its members lose what it allowed them. Needs RoleAdmin. CodeNotFound: there is no such
	// team.
	RemoveTeam(ctx context.Context, organization, name string) error
	// JoinTeam adds a member to a team, and makes the member of its organization if there is none of this name. Needs
	// RoleAdmin. CodeNotFound: there is no such team. CodeForbidden: also when the caller does not administer all that
	// the member may do.
	JoinTeam(ctx context.Context, organization, team, member string) error
	// LeaveTeam removes a member from a team. Needs RoleAdmin. CodeNotFound: there is no such team, or the member is not
	// in it.
	LeaveTeam(ctx context.Context, organization, team, member string) error
}

// Trusts manages whose identity tokens are exchanged for tokens. Callers see and change only trusts whose grants they
// administer.
type Trusts interface {
	// PutTrust makes a trust, or replaces one: tokens that the earlier one gave may do what both allow. Needs
	// RoleAdmin. CodeForbidden: also when the caller does not administer its grant, before or after.
	PutTrust(ctx context.Context, t Trust) error
	// ListTrusts describes the trusts, sorted by organization and name. Needs RoleAdmin. Fails as every method does.
	ListTrusts(ctx context.Context) ([]Trust, error)
	// RemoveTrust removes a trust; the tokens that it gave are refused from then on. Needs RoleAdmin. CodeNotFound:
	// there is no such trust.
	RemoveTrust(ctx context.Context, organization, name string) error
}

// Auditing reads the audit log.
type Auditing interface {
	// Audit sends the entries that the query selects and the caller may see, the oldest first. Needs RoleAdmin. An
	// error of fn is returned as it is. Fails as every method does.
	Audit(ctx context.Context, q AuditQuery, fn func(AuditEntry) error) error
}
