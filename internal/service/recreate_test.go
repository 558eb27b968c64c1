package service

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

func TestWhoMayGiveAnIdentityAway(t *testing.T) {
	own := deployments.StackName{Organization: "acme", Project: "shop", Stack: "new"}
	abroad := deployments.StackName{Organization: "evil", Project: "shop", Stack: "new"}
	admin := func(organization string, stacks ...string) deployments.Grant {
		return deployments.Grant{Role: deployments.RoleAdmin, Organization: organization, Stacks: stacks}
	}
	deployer := deployments.Grant{Role: deployments.RoleDeployer, Organization: "acme"}
	for what, c := range map[string]struct {
		grants []deployments.Grant
		to     deployments.StackName
		may    bool
	}{
		"an admin of the organization":         {[]deployments.Grant{admin("acme")}, own, true},
		"an admin of all":                      {[]deployments.Grant{admin(deployments.AnyOrganization)}, own, true},
		"an admin of all, to another":          {[]deployments.Grant{admin(deployments.AnyOrganization)}, abroad, true},
		"an admin of the new stack alone":      {[]deployments.Grant{admin("acme", "shop/new")}, own, false},
		"an admin of all its stacks by a glob": {[]deployments.Grant{admin("acme", "*/*")}, own, false},
		"an admin of another organization":     {[]deployments.Grant{admin("evil")}, abroad, false},
		"an admin of both, to another":         {[]deployments.Grant{admin("acme"), admin("evil")}, abroad, false},
		"nobody":                               {nil, own, false},
		"a deployer":                           {[]deployments.Grant{deployer}, own, false},
	} {
		t.Run(what, func(t *testing.T) {
			store, err := statestore.New(&bucket.Memory{}, statestore.Options{Master: make([]byte, 32)})
			if err != nil {
				t.Fatal(err)
			}
			s := New(nil, store, Readers{})
			caller := deployments.Caller{Authority: deployments.Authority{Grants: [][]deployments.Grant{c.grants}}}
			err = s.RecreateStack(t.Context(), caller, c.to, "acme/shop/old")
			if code := deployments.CodeOf(err); c.may && err != nil || !c.may && code != deployments.CodeForbidden {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}
