package grpcapi

import (
	"context"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// Administered is what a caller may see and change of tokens, members, teams, trusts and the audit log: nobody gives,
// takes or sees more than they administer. Each edge asks it after it has checked the role. Its lists cost what the
// caller's organization has: nothing of others is kept.
type Administered struct {
	Service Service
	Caller  deployments.Caller
}

// Service is what the edges need of the service: also single things of its lists.
type Service interface {
	deployments.Service
	// Token describes a token, which may be damaged; CodeNotFound when there is none of this name.
	Token(ctx context.Context, name string) (deployments.Token, error)
	// AnyMember describes a member, who may be damaged; CodeNotFound when there is none of this name.
	AnyMember(ctx context.Context, organization, name string) (deployments.Member, error)
	// AnyTeam and AnyTrust do the same; the team is without its members.
	AnyTeam(ctx context.Context, organization, name string) (deployments.Team, error)
	AnyTrust(ctx context.Context, organization, name string) (deployments.Trust, error)
	// TokensOf describes the tokens that are for an organization alone, or all with AnyOrganization, sorted by name.
	// MembersOf, TeamsOf and TrustsOf do the same of what is sorted by organization and name.
	TokensOf(ctx context.Context, organization string) ([]deployments.Token, error)
	MembersOf(ctx context.Context, organization string) ([]deployments.Member, error)
	TeamsOf(ctx context.Context, organization string) ([]deployments.Team, error)
	TrustsOf(ctx context.Context, organization string) ([]deployments.Trust, error)
}

// there reads a thing; false when there is none of its name.
func there[T any](
	ctx context.Context, read func(context.Context, string, string) (T, error), organization, name string,
) (thing T, found bool, err error) {
	thing, err = read(ctx, organization, name)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return thing, false, nil
	}
	return thing, err == nil, err
}

// owner is a member by organization and name.
type owner struct{ organization, name string }

// grants returns what each member may do.
func (a Administered) grants(ctx context.Context) (map[owner][]deployments.Grant, error) {
	members, err := a.Service.MembersOf(ctx, a.Caller.Within())
	grants := map[owner][]deployments.Grant{}
	for _, m := range members {
		grants[owner{m.Organization, m.Name}] = m.All()
	}
	return grants, err
}

// whole reports whether the caller administers everything of an organization.
func (a Administered) whole(organization string) bool {
	return a.Caller.Administers(deployments.Grant{Role: admin, Organization: organization})
}

// over reports whether a token may do nothing but what the caller administers. The admin of an organization is over
// each token that is limited to it, whether or not the token may do anything now.
func (a Administered) over(t deployments.Token, grants []deployments.Grant) bool {
	return a.whole(t.Within()) || a.Caller.Covers(deployments.AuthorityOf(t, grants))
}

// overOne is over, with the grants of the token's member.
func (a Administered) overOne(ctx context.Context, t deployments.Token) (bool, error) {
	var m deployments.Member
	if t.Member != "" {
		var err error
		if m, err = a.member(ctx, t.Organization, t.Member); err != nil {
			return false, err
		}
	}
	return a.over(t, m.All()), nil
}

// CreateToken creates a token, unless it may do what the caller does not administer. A member's token never may, also
// when another admin gives the member more (docs/adr/0042).
func (a Administered) CreateToken(ctx context.Context, t deployments.Token) (string, error) {
	if err := a.mayName(ctx, t); err != nil {
		return "", err
	}
	over, err := a.overOne(ctx, t)
	if err != nil {
		return "", err
	}
	if !over {
		return "", deployments.Errorf(deployments.CodeForbidden,
			"such a token may do what this one does not administer: an admin of that organization, or of all, can "+
				"make it")
	}
	if t.Limit = nil; t.Member != "" && !a.whole(t.Organization) {
		t.Limit = a.limit()
	}
	return a.Service.CreateToken(ctx, t)
}

// mayName refuses a token of a member who may do more than the caller administers, also if the token may not: what is
// done with it has their name in histories and in the audit log.
func (a Administered) mayName(ctx context.Context, t deployments.Token) error {
	if t.Member == "" || a.whole(t.Organization) {
		return nil
	}
	m, err := a.member(ctx, t.Organization, t.Member)
	if err != nil || a.Caller.Administers(m.All()...) {
		return err
	}
	return deployments.Errorf(deployments.CodeForbidden,
		"what is done with such a token is said to be done by the member %s, who may do what this one does not administer: "+
			"an admin of that organization, or of all, can make it, or make one without a member (--role)", t.Member)
}

// limit returns the authority of the caller without what they do not administer.
func (a Administered) limit() (limit [][]deployments.Grant) {
	for _, list := range a.Caller.Grants {
		limit = append(limit, slices.DeleteFunc(slices.Clone(list), func(g deployments.Grant) bool {
			return g.Role != admin
		}))
	}
	return limit
}

// DeriveToken makes a token from the caller's own.
func (a Administered) DeriveToken(ctx context.Context, t deployments.Token) (string, error) {
	if a.Caller.Made.IsZero() && a.Caller.Token != deployments.LocalToken {
		return "", deployments.Errorf(deployments.CodeForbidden, "no token can be made from the one in the settings of "+
			"serve: use one that `deployctl token create` has made")
	}
	t.Origin = &deployments.Origin{Token: a.Caller.Token, Made: a.Caller.Made}
	return a.Service.DeriveToken(ctx, t)
}

// ListTokens lists the tokens that may do nothing but what the caller administers.
func (a Administered) ListTokens(ctx context.Context) ([]deployments.Token, error) {
	list, err := a.Service.TokensOf(ctx, a.Caller.Within())
	if err != nil {
		return nil, err
	}
	grants, err := a.grants(ctx)
	return slices.DeleteFunc(list, func(t deployments.Token) bool {
		return !a.over(t, grants[owner{t.Organization, t.Member}])
	}), err
}

// RemoveToken removes one of ListTokens.
func (a Administered) RemoveToken(ctx context.Context, name string) error {
	t, err := a.Service.Token(ctx, name)
	if err != nil {
		return err
	}
	over, err := a.overOne(ctx, t)
	if err != nil {
		return err
	}
	if !over {
		return deployments.Errorf(deployments.CodeNotFound, "there is no token %s", name)
	}
	return a.Service.RemoveToken(ctx, name)
}

// member returns a member with every grant; the zero Member when there is none.
func (a Administered) member(ctx context.Context, organization, name string) (deployments.Member, error) {
	if m, found, err := there(ctx, a.Service.AnyMember, organization, name); found || err != nil {
		return m, err
	}
	return deployments.Member{}, nil
}

// GrantMember gives a member a role, if the caller administers all that the member may do.
func (a Administered) GrantMember(ctx context.Context, name string, g deployments.Grant) error {
	before, err := a.member(ctx, g.Organization, name)
	if err != nil {
		return err
	}
	if !a.Caller.Administers(append(before.All(), g)...) {
		return deployments.Errorf(deployments.CodeForbidden,
			"this token does not administer all that is to be changed: an admin of the organization, or of all, can "+
				"do it")
	}
	return a.Service.GrantMember(ctx, name, g)
}

// ListMembers lists the members with those grants and teams that the caller administers.
func (a Administered) ListMembers(ctx context.Context) ([]deployments.Member, error) {
	list, err := a.Service.MembersOf(ctx, a.Caller.Within())
	var seen []deployments.Member
	for _, m := range list {
		if m.Grant != nil && !a.Caller.Administers(*m.Grant) {
			m.Grant = nil
		}
		m.Teams = slices.DeleteFunc(slices.Clone(m.Teams), func(t deployments.Team) bool {
			return !a.Caller.Administers(t.Grant)
		})
		if len(m.All()) > 0 || m.Damaged != "" && a.whole(m.Organization) {
			seen = append(seen, m)
		}
	}
	return seen, err
}

// RemoveMember removes a member, if the caller administers all that the member may do, or the organization of a damaged
// one. Otherwise the answer is that of a name that nobody has.
func (a Administered) RemoveMember(ctx context.Context, name, organization string) error {
	found, err := a.member(ctx, organization, name)
	if err != nil {
		return err
	}
	if !a.Caller.Administers(found.All()...) && (found.Damaged == "" || !a.whole(organization)) {
		return deployments.Errorf(deployments.CodeNotFound, "there is no member %s with --organization '%s' that this "+
			"token administers: `deployctl member ls` lists those there are", name, organization)
	}
	return a.Service.RemoveMember(ctx, name, organization)
}

// Audit sends the entries about stacks and organizations that the caller administers.
func (a Administered) Audit(
	ctx context.Context, q deployments.AuditQuery, fn func(deployments.AuditEntry) error,
) error {
	if q.Organization == deployments.AnyOrganization {
		q.Organization = a.Caller.Within() // nobody else's log is read for who sees nothing of it
	}
	may := a.Caller.Stacks(admin)
	return a.Service.Audit(ctx, q, func(e deployments.AuditEntry) error {
		if !sees(a.Caller, may, e) {
			return nil
		}
		return fn(e)
	})
}

// sees reports whether a caller, who is an admin of the stacks for which may holds, may see an entry of the audit log.
func sees(caller deployments.Caller, may func(deployments.StackName) bool, e deployments.AuditEntry) bool {
	project, stack, ok := strings.Cut(e.Stack, "/")
	if ok {
		return may(deployments.StackName{Organization: e.Organization, Project: project, Stack: stack})
	}
	about := deployments.Grant{Role: viewer, Organization: e.Organization}
	if e.Organization == "" {
		about.Organization = deployments.AnyOrganization
	}
	return caller.Administers(about)
}
