package deployments

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Role is what a grant allows. Each role includes the previous ones.
type Role string

// The roles, the weakest first.
const (
	RoleViewer   Role = "viewer"   // sees stacks, updates and schedules, but no secret
	RoleDeployer Role = "deployer" // changes stacks and reads their secrets
	// may also remove resources from the state by force, manages tokens and members, and reads the audit log
	RoleAdmin Role = "admin"
)

var roles = []Role{RoleViewer, RoleDeployer, RoleAdmin}

// Includes reports whether a holder of the role may do what needs the other one.
func (r Role) Includes(needed Role) bool {
	return slices.Contains(roles, needed) && slices.Index(roles, r) >= slices.Index(roles, needed)
}

// AnyOrganization is the organization of a grant for every organization.
const AnyOrganization = "*"

// MaxStackGlobs limits the stack globs of one grant.
const MaxStackGlobs = 50

// Grant is a role on some stacks.
type Grant struct {
	Role Role `json:"role"`
	// Organization is one organization's name, or AnyOrganization.
	Organization string `json:"organization"`
	// Stacks are globs of PROJECT/STACK, in which '*' does not match '/'; none means every stack of the organization.
	Stacks []string `json:"stacks,omitempty"`
}

// Validate reports, as CodeInvalid, why the grant is not valid.
func (g Grant) Validate() error {
	if !slices.Contains(roles, g.Role) {
		return Errorf(CodeInvalid, "%q is not a role: use viewer, deployer or admin", g.Role)
	}
	if g.Organization != AnyOrganization {
		if err := ValidateName("organization", g.Organization); err != nil {
			return err
		}
	}
	if len(g.Stacks) > MaxStackGlobs {
		return Errorf(CodeInvalid, "a grant can have %d stack globs, not %d", MaxStackGlobs, len(g.Stacks))
	}
	for _, glob := range g.Stacks {
		if err := validateStackGlob(glob); err != nil {
			return err
		}
	}
	return nil
}

func validateStackGlob(glob string) error {
	project, stack, ok := strings.Cut(glob, "/")
	for _, part := range []string{project, stack} {
		letters := strings.NewReplacer("*", "x", "?", "x").Replace(part)
		ok = ok && ValidateName("stack", letters) == nil
	}
	if !ok {
		return Errorf(CodeInvalid, "%q is not a glob of stacks: write PROJECT/STACK, where * stands for any text and "+
			"? for one letter", glob)
	}
	return nil
}

// allows reports whether the grant includes a role on a stack.
func (g Grant) allows(role Role, s StackName) bool {
	if !g.Role.Includes(role) || g.Organization != AnyOrganization && g.Organization != s.Organization {
		return false
	}
	return len(g.Stacks) == 0 || matchesStack(g.Stacks, s)
}

// matchesStack reports whether one of the globs of PROJECT/STACK matches a stack.
func matchesStack(globs []string, s StackName) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		matches, err := path.Match(glob, s.Project+"/"+s.Stack)
		return err == nil && matches
	})
}

// administers reports whether the grant is an admin's over everything in the other one.
func (g Grant) administers(other Grant) bool {
	if g.Role != RoleAdmin || g.Organization != AnyOrganization && g.Organization != other.Organization {
		return false
	}
	foreign := func(glob string) bool { return !slices.Contains(g.Stacks, glob) }
	return len(g.Stacks) == 0 || len(other.Stacks) > 0 && !slices.ContainsFunc(other.Stacks, foreign)
}

// Authority is what a caller may do: what every one of its lists allows by one of its grants. The zero Authority allows
// nothing.
type Authority struct {
	Grants [][]Grant `json:"grants,omitempty"`
	// Holders are the tokens for which work goes on without a caller, the first requester first. Whatever they may no
	// longer do is removed before the authority is used. A caller's own authority has none.
	Holders []Holder `json:"holders,omitempty"`
}

// Holder is a token as it was when a request was made with it.
type Holder struct {
	Token  string `json:"token"`
	Member string `json:"member,omitempty"`
	// Made is when the token was created; a later token may have the same name.
	Made time.Time `json:"made,omitzero"`
}

// IsService reports whether the token is not a stored one: the local user's, or the one in the settings of serve.
func (h Holder) IsService() bool { return h.Token == LocalToken || h.Token == BootstrapToken }

// Is reports whether both are the same token.
func (h Holder) Is(other Holder) bool {
	return h.Token == other.Token && h.Member == other.Member && h.Made.Equal(other.Made)
}

// Everything is the authority of the local user, of a token without a scope, and of the service itself.
func Everything() Authority { return Authority{Grants: [][]Grant{{allOfAll}}} }

var allOfAll = Grant{Role: RoleAdmin, Organization: AnyOrganization}

// every reports whether each list has a grant for which the condition holds.
func (a Authority) every(holds func(Grant) bool) bool {
	for _, list := range a.Grants {
		if !slices.ContainsFunc(list, holds) {
			return false
		}
	}
	return len(a.Grants) > 0
}

// And returns the authority to do what both allow.
func (a Authority) And(b Authority) Authority {
	holders := slices.Clone(a.Holders)
	for _, h := range b.Holders {
		if !slices.Contains(holders, h) {
			holders = append(holders, h)
		}
	}
	if len(a.Grants) == 0 || len(b.Grants) == 0 {
		return Authority{Holders: holders}
	}
	both := slices.Clone(a.Grants)
	for _, list := range b.Grants {
		if !slices.ContainsFunc(both, func(other []Grant) bool { return reflect.DeepEqual(list, other) }) {
			both = append(both, list)
		}
	}
	return Authority{Grants: both, Holders: holders}
}

// May reports whether the authority includes a role on a stack.
func (a Authority) May(role Role, s StackName) bool {
	return a.every(func(g Grant) bool { return g.allows(role, s) })
}

// Has reports whether the authority includes a role on any stack.
func (a Authority) Has(role Role) bool {
	return a.every(func(g Grant) bool { return g.Role.Includes(role) })
}

// Within returns the organization outside of which the authority allows nothing, or AnyOrganization.
func (a Authority) Within() string {
	for _, list := range a.Grants {
		if len(list) > 0 && !slices.ContainsFunc(list, func(g Grant) bool {
			return g.Organization == AnyOrganization || g.Organization != list[0].Organization
		}) {
			return list[0].Organization
		}
	}
	return AnyOrganization
}

// HasIn reports whether the authority includes a role on any stack of an organization.
func (a Authority) HasIn(role Role, organization string) bool {
	return a.every(func(g Grant) bool {
		return g.Role.Includes(role) && (g.Organization == AnyOrganization || g.Organization == organization)
	})
}

// Administers reports whether the authority is an admin's over everything in the grants: whether it may give and revoke
// them, and see their holders.
func (a Authority) Administers(grants ...Grant) bool {
	for _, other := range grants {
		if !a.every(func(g Grant) bool { return g.administers(other) }) {
			return false
		}
	}
	return len(grants) > 0
}

// AdministersAll reports whether the authority is an admin's over every organization.
func (a Authority) AdministersAll() bool { return a.Administers(allOfAll) }

// Covers reports whether the authority administers everything that the other one allows.
func (a Authority) Covers(other Authority) bool {
	// The other authority allows only what each of its lists allows, so it is enough to administer one list.
	return a.AdministersAll() || slices.ContainsFunc(other.Grants,
		func(list []Grant) bool { return a.Administers(list...) })
}

// Caller is the caller of the service, with its authority.
type Caller struct {
	Token  string `json:"token"`
	Member string `json:"member,omitempty"` // the token's owner; empty when it has none
	Authority
	// Made is when the token was created; zero if it is not a stored one.
	Made time.Time `json:"made,omitzero"`
	// Identity is the subject of the identity token for which the token was given; empty if for none.
	Identity string `json:"identity,omitempty"`
	// Trusted means that the token has no name of its own: the client's word is taken for the initiator.
	Trusted bool `json:"-"`
	// TokensOnly limits the caller to managing tokens and members, whatever its authority.
	TokensOnly bool `json:"-"`
}

// Name returns the caller's name for a history.
func (c Caller) Name() string {
	if c.Member != "" {
		return c.Member
	}
	return c.Token
}

// Party returns who pays for what the caller uses: the organization that the token is for or, if it is for all, the one
// that a call is about. Nobody pays because a caller of another organization names them.
func (c Caller) Party(about string) string {
	if within := c.Within(); within != AnyOrganization {
		return within
	}
	if c.HasIn(RoleViewer, about) && about != "" {
		return about
	}
	return c.Token
}

// Delegated returns the authority of work that goes on without the caller.
func (c Caller) Delegated() *Authority {
	return &Authority{Grants: c.Grants, Holders: []Holder{{Token: c.Token, Member: c.Member, Made: c.Made}}}
}

// Names of tokens that are not stored: the embedded service's user, and the token in the settings of serve.
const (
	LocalToken     = "local"
	BootstrapToken = "bootstrap"
)

// NoStack is the error about a stack that does not exist, or that the caller must not see.
func NoStack(s StackName) error {
	return Errorf(CodeNotFound, "there is no stack %s: create it with `deployctl stack init %s`", s, s)
}

// Token describes an access token; its text is known only when it is created.
type Token struct {
	Name string `json:"name"`
	// Member is the owner, who is one of Organization; a token without an owner has its own grant.
	Member       string `json:"member,omitempty"`
	Organization string `json:"organization,omitempty"` // the member's; empty without one
	// Grant is what it may do; nil: what its member may. With both, it may do what both allow.
	Grant *Grant `json:"grant,omitempty"`
	// Limit is what the admin administered who created it for a member, if that was not all of the organization: the
	// member may get more later, and the token does not.
	Limit   [][]Grant `json:"limit,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Used    time.Time `json:"used,omitzero"`    // to the minute
	// Origin is what it was made from; nil: an admin created it.
	Origin *Origin `json:"origin,omitempty"`
	// Damaged says why the token cannot be read; then only its name is known, and it is not accepted.
	Damaged string `json:"damaged,omitempty"`
}

// Origin is what a token was made from. The token may do no more than that may at the time, and is worthless once it is
// removed. It is a trust, by which an identity was exchanged, or another token.
type Origin struct {
	Trust    string `json:"trust,omitempty"`    // ORGANIZATION/NAME
	Identity string `json:"identity,omitempty"` // the subject of the identity token
	Token    string `json:"token,omitempty"`
	// Made is when the trust or the token was created; a later one may have the same name.
	Made time.Time `json:"made,omitzero"`
}

// Validate reports, as CodeInvalid, why the token is not valid.
func (t Token) Validate() error {
	if err := ValidateName("token", t.Name); err != nil {
		return err
	}
	switch {
	case t.Name == LocalToken || t.Name == BootstrapToken:
		return Errorf(CodeInvalid, "%q is a name that the service uses itself: use another one", t.Name)
	case strings.Contains(t.Name, "."):
		return Errorf(CodeInvalid, "%q is like the name of a token that was made from another one: use one without a dot",
			t.Name)
	}
	if t.Member == "" && t.Grant == nil {
		return Errorf(CodeInvalid, "a token needs a role (--role), or a member whose roles it has (--member)")
	}
	if t.Member != "" {
		if err := ValidateMember(t.Organization, t.Member); err != nil {
			return err
		}
	}
	switch {
	case t.Member == "" && t.Organization != "":
		return Errorf(CodeInvalid, "a token without a member is for the organization of its role alone")
	case t.Grant == nil:
		return nil
	case t.Member != "" && t.Grant.Organization != t.Organization:
		return Errorf(CodeInvalid, "the member %s of %s has no role in %s: the role of a member's token is one in their "+
			"organization", t.Member, t.Organization, t.Grant.Organization)
	}
	return t.Grant.Validate()
}

// Within returns the organization outside of which the token may do nothing, or AnyOrganization.
func (t Token) Within() string {
	switch {
	case t.Member != "":
		return t.Organization
	case t.Grant != nil:
		return t.Grant.Organization
	}
	return AnyOrganization
}

// Member is a person or a machine that owns tokens. A member is one of an organization, or of AnyOrganization: the same
// name in another one is another member.
type Member struct {
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	Grant        *Grant    `json:"grant,omitempty"` // in the organization; nil: only teams allow something
	Created      time.Time `json:"created"`
	// Teams are those that the member is in, without their members.
	Teams []Team `json:"teams,omitempty"`
	// Damaged says why the member cannot be read; then only the organization and the name are known, and the member may
	// do nothing. Only lists have such members.
	Damaged string `json:"damaged,omitempty"`
}

// ValidateMember reports, as CodeInvalid, why there is no such member in any organization.
func ValidateMember(organization, name string) error {
	if organization != AnyOrganization {
		if err := ValidateName("organization", organization); err != nil {
			return err
		}
	}
	return ValidateName("member", name)
}

// AuthorityOf returns what a token may do, from its own grant, all of its member's, and its limit. A token without a
// grant and a member was created before tokens had a scope, and may do everything.
func AuthorityOf(t Token, member []Grant) Authority {
	var a Authority
	if t.Grant != nil {
		a.Grants = append(a.Grants, []Grant{*t.Grant})
	}
	if t.Member != "" {
		a.Grants = append(a.Grants, member)
	}
	if len(a.Grants) == 0 {
		return Everything()
	}
	a.Grants = append(a.Grants, t.Limit...)
	return a
}
