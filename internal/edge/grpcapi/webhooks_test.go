package grpcapi

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func TestWebhooksAreTheDeployersOfTheirStackAndTheAdminsOfTheirOrganization(t *testing.T) {
	of := func(role deployments.Role, organization string) deployments.Caller {
		return deployments.Caller{Authority: deployments.Authority{Grants: [][]deployments.Grant{
			{{Role: role, Organization: organization}}}}}
	}
	stack := deployments.WebhookScope{Organization: "acme", Project: "shop", Stack: "dev"}
	whole := deployments.WebhookScope{Organization: "acme"}
	for _, c := range []struct {
		name            string
		caller          deployments.Caller
		ofStack, ofAcme deployments.Code // "": allowed
	}{
		{"an admin", of(admin, "acme"), "", ""},
		{"a deployer", of(deployer, "acme"), "", deployments.CodeForbidden},
		{"a viewer", of(viewer, "acme"), deployments.CodeForbidden, deployments.CodeForbidden},
		{"an admin of another organization", of(admin, "other"), deployments.CodeNotFound, deployments.CodeForbidden},
		{"nobody", deployments.Caller{}, deployments.CodeNotFound, deployments.CodeForbidden},
	} {
		for scope, want := range map[deployments.WebhookScope]deployments.Code{stack: c.ofStack, whole: c.ofAcme,
			{Organization: ".."}: deployments.CodeInvalid, {Organization: "acme", Stack: "dev"}: deployments.CodeInvalid} {
			err := AllowWebhooks(c.caller, scope)
			if got := deployments.CodeOf(err); (err == nil) != (want == "") || err != nil && got != want {
				t.Errorf("%s on %v: %v, want %q", c.name, scope, err, want)
			}
		}
	}
}
