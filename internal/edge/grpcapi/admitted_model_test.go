package grpcapi_test

import (
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// The model of who may do what. A member, a team, a trust and a token are things here, and not names: whatever has the
// name of an earlier one is another thing.

// theMember is a member, who is gone for good once nothing is left that they may do.
type theMember struct {
	organization, name string
	grant              *deployments.Grant
	teams              []*theTeam
	gone               bool
}

// theTeam is a team, and theTrust a trust.
type theTeam struct {
	organization, name string
	grant              deployments.Grant
	gone               bool
}

type theTrust struct {
	theTeam
	admitted stackSet // what the admin administered who gave its grant
}

// theToken is a token. It is made from another token or by a trust, or was created by an admin.
type theToken struct {
	name, text string
	grant      *deployments.Grant
	member     *theMember
	trust      *theTrust
	from       *theToken
	within     string
	// admitted is what whoever gave it administered at that time.
	admitted stackSet
	gone     bool
}

type stackSet map[deployments.StackName]bool

// The stacks of the model. No glob matches those of the project zz, so that only who administers a whole organization
// administers its one.
var (
	organizations = []string{"acme", "evil"}
	universe      = func() (all []deployments.StackName) {
		for _, organization := range append(organizations, "third") {
			for _, project := range []string{"shop", "pay", "zz"} {
				all = append(all, deployments.StackName{Organization: organization, Project: project, Stack: "dev"})
			}
		}
		return all
	}()
	everyRole = []deployments.Role{deployments.RoleViewer, deployments.RoleDeployer, deployments.RoleAdmin}
)

// allowed reports whether one of the grants includes a role on a stack. The globs are PROJECT/*.
func allowed(role deployments.Role, s deployments.StackName, grants ...deployments.Grant) bool {
	return slices.ContainsFunc(grants, func(g deployments.Grant) bool {
		return slices.Index(everyRole, g.Role) >= slices.Index(everyRole, role) &&
			(g.Organization == "*" || g.Organization == s.Organization) &&
			(len(g.Stacks) == 0 || slices.ContainsFunc(g.Stacks, func(glob string) bool {
				return strings.TrimSuffix(glob, "/*") == s.Project
			}))
	})
}

// grants are what a member may do now.
func (m *theMember) grants() (all []deployments.Grant) {
	if m.grant != nil {
		all = append(all, *m.grant)
	}
	for _, t := range m.teams {
		if !t.gone {
			all = append(all, t.grant)
		}
	}
	return all
}

// may reports whether a token includes a role on a stack.
func (x *theToken) may(role deployments.Role, s deployments.StackName) bool {
	switch {
	case x.gone || x.grant != nil && !allowed(role, s, *x.grant):
		return false
	case x.from != nil:
		return x.from.may(role, s)
	case x.trust != nil:
		return !x.trust.gone && allowed(role, s, x.trust.grant)
	case x.member != nil:
		return !x.member.gone && allowed(role, s, x.member.grants()...) && x.admitted[s]
	}
	return true
}

// administered are the stacks that the holder of a token administers.
func (x *theToken) administered() stackSet {
	set := stackSet{}
	for _, s := range universe {
		set[s] = x.may(deployments.RoleAdmin, s)
	}
	return set
}

// gives reports whether the holder of a token administers all stacks of a grant.
func (x *theToken) gives(g deployments.Grant) bool {
	return !slices.ContainsFunc(universe, func(s deployments.StackName) bool {
		return allowed(g.Role, s, g) && !x.may(deployments.RoleAdmin, s)
	})
}

// whole reports whether the holder of a token administers all of an organization, or of "*".
func (x *theToken) whole(organization string) bool {
	return x.gives(deployments.Grant{Role: deployments.RoleViewer, Organization: organization})
}
