package service

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
)

// RecreateStack creates an empty stack with the identity of one that is gone. Who has an identity is taken for the
// owner of what that stack has made: so it is an admin of the whole organization that gives it away, and within the
// organization. An admin of all organizations may give away any.
func (s *Service) RecreateStack(
	ctx context.Context, c deployments.Caller, name deployments.StackName, identity string,
) error {
	first, err := deployments.ParseIdentity(identity)
	if err != nil {
		return err
	}
	whole := deployments.Grant{Role: deployments.RoleAdmin, Organization: first.Organization}
	switch anywhere := c.AdministersAll(); {
	case anywhere, first.Organization == name.Organization && c.Administers(whole):
		return s.store.RecreateStack(ctx, name, identity, anywhere)
	case first.Organization != name.Organization:
		return deployments.Errorf(deployments.CodeForbidden, "only an admin of all organizations gives the identity %s to a "+
			"stack of another organization", identity)
	}
	return deployments.Errorf(deployments.CodeForbidden, "the identity %s is given away by admins of all of the "+
		"organization %s: ask one of them", identity, first.Organization)
}
