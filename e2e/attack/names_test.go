//go:build unix

package attack

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/e2e/harness"
)

// plantedName has the admin of another organization make a member of a usual name there, keep a token of it, and wait
// until the victim's organization gets a member of that name.
func plantedName(t *testing.T, f *field) {
	tokens, members := api.NewTokensClient(f.conn), api.NewMembersClient(f.conn)
	planter := f.holder(t, "planter", "--role", "admin", "--organization", "rival")
	_, err := members.GrantMember(planter.calls, &api.GrantMemberRequest{Name: "carol",
		Grant: &api.Grant{Role: "viewer", Organization: "rival"}})
	harness.Must(t, err)
	made, err := tokens.CreateToken(planter.calls, &api.CreateTokenRequest{Name: "planted", Member: "carol",
		Organization: "rival"})
	harness.Must(t, err)
	planted := metadata.NewOutgoingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+made.GetText()))

	of := []string{"--organization", "organization"}
	for _, command := range [][]string{
		{"member", "add", "carol", "--role", "admin", "--organization", "*"},
		{"member", "add", "carol", "--role", "admin", "--organization", "organization"},
		{"team", "add", "joined", "--role", "deployer", "--organization", "organization"},
		{"team", "join", "joined", "carol", "--organization", "organization"},
	} {
		f.victim.Must(t, command...)
		_, err := f.stacks().GetStack(planted, &api.GetStackRequest{Stack: dev})
		answered(t, "the planted token after "+strings.Join(command, " "), err, codes.NotFound)
		export, err := f.stacks().Export(planted, &api.ExportRequest{Stack: dev, ShowSecrets: true})
		if err == nil {
			_, err = export.Recv()
		}
		answered(t, "secrets after "+strings.Join(command, " "), err, codes.NotFound)
	}
	for _, organization := range []string{"organization", "*"} {
		_, err := tokens.CreateToken(planter.calls, &api.CreateTokenRequest{Name: "planted-later", Member: "carol",
			Organization: organization})
		answered(t, "a token of carol of "+organization, err, codes.PermissionDenied)
	}

	// whoever may do something in the organization is seen by its admin, who can end it
	boss := f.holder(t, append([]string{"boss", "--role", "admin"}, of...)...)
	carol := f.holder(t, append([]string{"carols", "--member", "carol"}, of...)...)
	_, err = f.stacks().GetStack(carol.calls, &api.GetStackRequest{Stack: dev})
	answered(t, "the organization's own carol", err, codes.OK)
	list, err := tokens.ListTokens(boss.calls, &api.ListTokensRequest{})
	if said := list.String(); err != nil || !strings.Contains(said, "carols") || strings.Contains(said, "planted") {
		t.Errorf("the organization's admin sees %s, %v", said, err)
	}
	_, err = tokens.RemoveToken(boss.calls, &api.RemoveTokenRequest{Name: "carols"})
	answered(t, "the admin removes carol's token", err, codes.OK)
	_, err = f.stacks().GetStack(carol.calls, &api.GetStackRequest{Stack: dev})
	answered(t, "carol's token after that", err, codes.Unauthenticated)

	// the planter does not learn whether there is such a member
	removal := func(name string) string {
		_, err := members.RemoveMember(planter.calls, &api.RemoveMemberRequest{Name: name, Organization: "organization"})
		answered(t, "the removal of "+name, err, codes.PermissionDenied)
		return strings.ReplaceAll(err.Error(), name, "NAME")
	}
	if there, nowhere := removal("carol"), removal("nobody"); there != nowhere {
		t.Errorf("the answers tell that there is a member: %q and %q", there, nowhere)
	}
	f.victim.Must(t, "member", "rm", "carol", "--organization", "*")
}
