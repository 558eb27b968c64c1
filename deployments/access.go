package deployments

import (
	"path"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Role is what a grant allows. Each role may do all that the one before it may.
type Role string

// The roles, the weakest first.
const (
	RoleViewer   Role = "viewer"   // sees stacks, updates and schedules, but no secret
	RoleDeployer Role = "deployer" // changes stacks and reads their secrets
	// also has resources forgotten by force, manages tokens and members, and reads the audit log
	RoleAdmin Role = "admin"
)

var roles = []Role{RoleViewer, RoleDeployer, RoleAdmin}

// Includes reports whether whoever has the role may do what needs the other one.
func (r Role) Includes(needed Role) bool {
	return slices.Contains(roles, needed) && slices.Index(roles, r) >= slices.Index(roles, needed)
}

// AnyOrganization is the organization of a grant for every organization.
const AnyOrganization = "*"

// MaxStackGlobs bounds the stack globs of one grant.
const MaxStackGlobs = 50

// Grant is a role on some stacks.
type Grant struct {
	Role Role `json:"role"`
	// Organization is one organization's name, or AnyOrganization.
	Organization string `json:"organization"`
	// Stacks are globs of PROJECT/STACK, in which '*' does not match '/'; none means every stack of the organization.
	Stacks []string `json:"stacks,omitempty"`
}

// Validate reports, as CodeInvalid, why there cannot be such a grant.
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
	return len(g.Stacks) == 0 || slices.ContainsFunc(g.Stacks, func(glob string) bool {
		matches, err := path.Match(glob, s.Project+"/"+s.Stack)
		return err == nil && matches
	})
}

// administers reports whether the grant is an admin's over everything that the other one is about.
func (g Grant) administers(other Grant) bool {
	if g.Role != RoleAdmin || g.Organization != AnyOrganization && g.Organization != other.Organization {
		return false
	}
	foreign := func(glob string) bool { return !slices.Contains(g.Stacks, glob) }
	return len(g.Stacks) == 0 || len(other.Stacks) > 0 && !slices.ContainsFunc(other.Stacks, foreign)
}

// Authority is what somebody may do: what in each of its lists one grant allows. The zero Authority allows nothing.
type Authority struct {
	Grants [][]Grant `json:"grants,omitempty"`
	// Holders are the tokens for which something goes on without a caller, that of whoever asked for it first. What
	// they may do no longer is to be taken off before the authority is used. Callers' own authority has none.
	Holders []Holder `json:"holders,omitempty"`
}

// Holder is a token as it was when something was asked for with it.
type Holder struct {
	Token  string `json:"token"`
	Member string `json:"member,omitempty"`
	// Made is when the token was made: it is not another one that gets the name later.
	Made time.Time `json:"made,omitzero"`
}

// IsService reports whether the token is none that is stored: it is the local user's, or the one in the settings of
// serve.
func (h Holder) IsService() bool { return h.Token == LocalToken || h.Token == BootstrapToken }

// Everything is the authority of the local user, of a token without a scope, and of what the service does by itself.
func Everything() Authority { return Authority{Grants: [][]Grant{{allOfAll}}} }

var allOfAll = Grant{Role: RoleAdmin, Organization: AnyOrganization}

// every reports whether a condition holds for a grant of each list.
func (a Authority) every(holds func(Grant) bool) bool {
	for _, list := range a.Grants {
		if !slices.ContainsFunc(list, holds) {
			return false
		}
	}
	return len(a.Grants) > 0
}

// And gives the authority to do what both allow.
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

// Has reports whether the authority includes a role on any stack at all.
func (a Authority) Has(role Role) bool {
	return a.every(func(g Grant) bool { return g.Role.Includes(role) })
}

// Administers reports whether the authority is an admin's over all that the grants are about: whether it may give and
// take them, and see who has them.
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

// Covers reports whether the authority administers whatever the other one allows.
func (a Authority) Covers(other Authority) bool {
	// What the other one allows is within each of its lists, so one list that is administered is enough.
	return a.AdministersAll() || slices.ContainsFunc(other.Grants,
		func(list []Grant) bool { return a.Administers(list...) })
}

// Caller is who makes a call of the service, and what they may do.
type Caller struct {
	Token  string `json:"token"`
	Member string `json:"member,omitempty"` // whose token it is; empty when it is nobody's
	Authority
	// Made is when the token was made; zero for one that is not stored.
	Made time.Time `json:"made,omitzero"`
	// Trusted: the token has no name of its own, so what the client says about who asks is believed.
	Trusted bool `json:"-"`
	// TokensOnly: whatever the authority says, only tokens and members may be managed.
	TokensOnly bool `json:"-"`
}

// Name is what a history calls the caller.
func (c Caller) Name() string {
	if c.Member != "" {
		return c.Member
	}
	return c.Token
}

// Delegated gives the authority of what the caller asks for, and which goes on without them.
func (c Caller) Delegated() *Authority {
	return &Authority{Grants: c.Grants, Holders: []Holder{{Token: c.Token, Member: c.Member, Made: c.Made}}}
}

// Names of tokens that are not stored: that of the embedded service's user, and the one in the settings of serve.
const (
	LocalToken     = "local"
	BootstrapToken = "bootstrap"
)

// NoStack is the error about a stack that is not there, or that must look so to whoever asks.
func NoStack(s StackName) error {
	return Errorf(CodeNotFound, "there is no stack %s: create it with `deployctl stack init %s`", s, s)
}

// Token describes an access token; its text is known only when it is created.
type Token struct {
	Name string `json:"name"`
	// Member is who it belongs to; without one, a token has a grant of its own.
	Member string `json:"member,omitempty"`
	// Grant is what it may do; nil: what its member may. With both, it may do what both allow.
	Grant   *Grant    `json:"grant,omitempty"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Used    time.Time `json:"used,omitzero"`    // to the minute
	// Damaged says why the token cannot be read; then nothing but its name is known, and it lets nobody in.
	Damaged string `json:"damaged,omitempty"`
}

// Validate reports, as CodeInvalid, why there cannot be such a token.
func (t Token) Validate() error {
	if err := ValidateName("token", t.Name); err != nil {
		return err
	}
	if t.Name == LocalToken || t.Name == BootstrapToken {
		return Errorf(CodeInvalid, "%q is a name that the service uses itself: use another one", t.Name)
	}
	if t.Member == "" && t.Grant == nil {
		return Errorf(CodeInvalid, "a token needs a role (--role), or a member whose roles it has (--member)")
	}
	if t.Member != "" {
		if err := ValidateName("member", t.Member); err != nil {
			return err
		}
	}
	if t.Grant != nil {
		return t.Grant.Validate()
	}
	return nil
}

// Member is somebody who has tokens.
type Member struct {
	Name    string    `json:"name"`
	Grants  []Grant   `json:"grants"` // at most one for each organization
	Created time.Time `json:"created"`
	// Damaged says why the member cannot be read; then nothing but the name is known, and the member may do nothing.
	// Only a list has such members.
	Damaged string `json:"damaged,omitempty"`
}

// AuthorityOf gives what a token may do, from its own grant and those of its member. A token that says neither is of
// the time before tokens had a scope, and may do everything.
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
	return a
}
