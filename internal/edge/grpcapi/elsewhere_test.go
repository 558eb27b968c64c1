package grpcapi

import (
	"strings"
	"testing"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
)

func TestTheAdminOfAnotherOrganizationCannotTellWhichMembersThereAre(t *testing.T) {
	_, connection, texts := staffed(t)
	tokens, members := api.NewTokensClient(connection), api.NewMembersClient(connection)
	teams, ctx := api.NewTeamsClient(connection), as(t.Context(), texts["initech"])
	grant := &api.Grant{Role: "viewer", Organization: "acme"}
	for what, call := range map[string]func(name string) error{
		"to add them": func(name string) error {
			_, err := members.GrantMember(ctx, &api.GrantMemberRequest{Name: name, Grant: grant})
			return err
		},
		"to remove them": func(name string) error {
			_, err := members.RemoveMember(ctx, &api.RemoveMemberRequest{Name: name, Organization: "acme"})
			return err
		},
		"to make a token of theirs": func(name string) error {
			_, err := tokens.CreateToken(ctx, &api.CreateTokenRequest{Name: "x", Member: name, Organization: "acme"})
			return err
		},
		"to have them join a team": func(name string) error {
			_, err := teams.JoinTeam(ctx, &api.JoinTeamRequest{Organization: "acme", Team: "web", Member: name})
			return err
		},
		"to have them leave a team": func(name string) error {
			_, err := teams.LeaveTeam(ctx, &api.LeaveTeamRequest{Organization: "acme", Team: "web", Member: name})
			return err
		},
	} {
		here, nowhere := call("ann"), call("eve")
		if here == nil || nowhere == nil || strings.ReplaceAll(here.Error(), "ann", "eve") != nowhere.Error() {
			t.Errorf("%s: %v, and where there is none: %v", what, here, nowhere)
		}
	}
}

func TestATokenGetsNoMoreThanItsCreatorAdministeredWhateverItsMemberGetsLater(t *testing.T) {
	service, connection, texts := staffed(t)
	shop := deployments.Grant{Role: viewer, Organization: "acme", Stacks: []string{"shop/*"}}
	if err := service.GrantMember(t.Context(), "bob", shop); err != nil {
		t.Fatal(err)
	}
	create := func(by string) string {
		t.Helper()
		made, err := api.NewTokensClient(connection).CreateToken(as(t.Context(), texts[by]),
			&api.CreateTokenRequest{Name: "bob-" + by, Member: "bob", Organization: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		return made.GetText()
	}
	kept, whole := create("shop"), create("acme")
	more := deployments.Grant{Role: deployer, Organization: "acme"}
	if err := service.GrantMember(t.Context(), "bob", more); err != nil {
		t.Fatal(err)
	}
	shown, hidden := deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"},
		deployments.StackName{Organization: "acme", Project: "pay", Stack: "dev"}
	limited, err := service.Authenticate(t.Context(), kept)
	if err != nil || !limited.May(deployer, shown) || limited.May(viewer, hidden) {
		t.Errorf("by an admin of some stacks: %+v, %v", limited, err)
	}
	if all, err := service.Authenticate(t.Context(), whole); err != nil || !all.May(deployer, hidden) {
		t.Errorf("by an admin of the organization: %+v, %v", all, err)
	}
	for by, want := range map[string]int{"shop": 2, "acme": 5, "initech": 1} { // shop's: their own, and bob's limited one
		list, err := api.NewTokensClient(connection).ListTokens(as(t.Context(), texts[by]), &api.ListTokensRequest{})
		if err != nil || len(list.GetTokens()) != want {
			t.Errorf("%s administers %v, %v", by, list, err)
		}
	}
}
