package grpcapi

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
)

func TestOnlyAnAdminOfAWholeOrganizationManagesItsProfilesAndNobodySeesASecret(t *testing.T) {
	s := memory.New()
	connection := serving(t, Config{Authority: quotaCallers(), Service: s, Auditor: s}, nil)
	set := &api.ChangeProfileRequest{Organization: "acme", Name: "aws",
		Stacks: &api.ProfileStacks{Stacks: []string{"shop/*"}},
		Set:    []*api.ProfileVariable{{Name: "KEY", Value: "hush", Secret: true}, {Name: "REGION", Value: "eu"}}}
	profiles := api.NewProfilesClient(connection)
	as := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	}
	for token := range quotaCallers() {
		want := codes.PermissionDenied
		if token == "whole" || token == "operator" {
			want = codes.OK
		}
		changed, err := profiles.ChangeProfile(as(token), set)
		got, shown := profiles.GetProfile(as(token), &api.GetProfileRequest{Organization: "acme", Name: "aws"})
		_, removed := profiles.RemoveProfile(as(token), &api.RemoveProfileRequest{Organization: "acme", Name: "aws"})
		for what, err := range map[string]error{"change": err, "show": shown, "remove": removed} {
			if status.Code(err) != want {
				t.Errorf("%s by %s: %v", what, token, err)
			}
		}
		if strings.Contains(changed.String()+got.String(), "hush") {
			t.Errorf("%s sees %v and %v", token, changed, got)
		}
	}
	if _, err := profiles.ChangeProfile(as("whole"), set); err != nil {
		t.Fatal(err)
	}
	for token, sees := range map[string]string{"viewer": "aws", "deployer": "aws", "admin": "aws", "writer": "aws",
		"whole": "aws KEY= REGION=eu shop/* whole", "operator": "aws KEY= REGION=eu shop/* whole", "foreign": "-"} {
		m, err := profiles.ListProfiles(as(token), &api.ListProfilesRequest{Organization: "acme"})
		said := "-"
		for _, p := range m.GetProfiles() {
			parts := []string{p.GetName()}
			for _, v := range p.GetVariables() {
				parts = append(parts, v.GetName()+"="+v.GetValue())
			}
			said = strings.Join(append(append(parts, p.GetStacks()...), p.GetBy()), " ")
		}
		if strings.TrimSpace(said) != sees || (err != nil) != (sees == "-") {
			t.Errorf("%s sees %q, %v", token, said, err)
		}
	}
	recorded := 0
	for _, e := range s.Audited {
		if strings.Contains(e.Subject+e.Error, "hush") {
			t.Errorf("the audit log has the secret: %+v", e)
		}
		if e.Method == "Profiles/ChangeProfile" && e.Token == "whole" && e.Organization == "acme" &&
			strings.HasPrefix(e.Subject, "name=aws stacks=shop/* set=KEY,REGION") {
			recorded++
		}
	}
	if recorded == 0 {
		t.Errorf("no change is in the audit log: %+v", s.Audited)
	}
}
