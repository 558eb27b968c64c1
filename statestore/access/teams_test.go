package access

import (
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// people is a store with a clock.
func people(t *testing.T) (*Store, *time.Time) {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// As on a real bucket: a write that finds its own content there counts as one whose answer was lost.
	s, err := over(bucket.NewRetry(&bucket.Memory{}, time.Minute), func() time.Time {
		now = now.Add(time.Second)
		return now
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, &now
}

func done(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

var (
	pay  = deployments.StackName{Organization: "acme", Project: "pay", Stack: "dev"}
	shop = deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}
)

func on(role deployments.Role, globs ...string) deployments.Grant {
	return deployments.Grant{Role: role, Organization: "acme", Stacks: globs}
}

func TestAMemberMayDoWhatTheirOwnRoleAndAnyOfTheirTeamsAllow(t *testing.T) {
	s, _ := people(t)
	done(t, s.GrantMember(t.Context(), "ann", on(deployments.RoleViewer)),
		s.GrantTeam(t.Context(), "web", on(deployments.RoleDeployer, "shop/*")),
		s.GrantTeam(t.Context(), "ops", on(deployments.RoleAdmin, "*/prod")),
		s.JoinTeam(t.Context(), "acme", "web", "ann"))
	text, err := s.CreateToken(t.Context(), deployments.Token{Name: "laptop", Member: "ann", Organization: "acme"})
	done(t, err)
	may := func(role deployments.Role, name deployments.StackName) bool {
		s.callers.forget(deployments.AnyOrganization)
		c, err := s.Authenticate(t.Context(), text)
		return err == nil && c.May(role, name)
	}
	if !may(deployments.RoleViewer, pay) || may(deployments.RoleDeployer, pay) || !may(deployments.RoleDeployer, shop) ||
		may(deployments.RoleAdmin, shop) {
		t.Error("the authority is not the union of the member's and the team's")
	}
	done(t, s.GrantTeam(t.Context(), "web", on(deployments.RoleViewer, "shop/*")))
	if may(deployments.RoleDeployer, shop) {
		t.Error("a team's weaker role changes nothing")
	}
	done(t, s.JoinTeam(t.Context(), "acme", "ops", "ann"))
	prod := pay
	prod.Stack = "prod"
	if !may(deployments.RoleAdmin, prod) {
		t.Error("a second team gives nothing")
	}
	done(t, s.LeaveTeam(t.Context(), "acme", "ops", "ann"))
	if may(deployments.RoleAdmin, prod) || !may(deployments.RoleViewer, prod) {
		t.Error("who has left a team has its role")
	}
	if err := s.LeaveTeam(t.Context(), "acme", "ops", "ann"); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("leaving twice: %v", err)
	}
	if err := s.JoinTeam(t.Context(), "acme", "none", "ann"); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("joining a team that is not there: %v", err)
	}
}

func TestTheSameNameInAnotherOrganizationIsAnotherMember(t *testing.T) {
	s, _ := people(t)
	elsewhere := deployments.Grant{Role: deployments.RoleViewer, Organization: "evil"}
	done(t, s.GrantMember(t.Context(), "carol", elsewhere))
	planted, err := s.CreateToken(t.Context(), deployments.Token{Name: "planted", Member: "carol", Organization: "evil"})
	done(t, err)
	closed := func(when string) {
		t.Helper()
		if c, err := s.Authenticate(t.Context(), planted); err != nil || c.May(deployments.RoleViewer, shop) {
			t.Errorf("%s: %+v, %v", when, c, err)
		}
	}
	done(t, s.GrantMember(t.Context(), "carol", on(deployments.RoleAdmin)))
	closed("after the other organization has a member of the name")
	done(t, s.GrantTeam(t.Context(), "web", on(deployments.RoleDeployer)), s.JoinTeam(t.Context(), "acme", "web", "carol"))
	closed("after that member has joined a team")
	done(t, s.GrantMember(t.Context(), "carol", adminOfAll))
	closed("after there is a member of all organizations")

	left, err := s.CreateToken(t.Context(), deployments.Token{Name: "left", Member: "carol", Organization: "acme"})
	done(t, err, s.RemoveMember(t.Context(), "carol", "acme"))
	done(t, s.GrantMember(t.Context(), "carol", on(deployments.RoleAdmin)))
	if c, err := s.Authenticate(t.Context(), left); deployments.CodeOf(err) != deployments.CodeUnauthorized {
		t.Errorf("other organizations kept their carol meanwhile, and acme's removed one may %+v, %v", c, err)
	}
}

func TestATeamThatWasRemovedAllowsNothingAlsoUnderItsOldName(t *testing.T) {
	s, _ := people(t)
	done(t, s.GrantTeam(t.Context(), "web", on(deployments.RoleDeployer)), s.JoinTeam(t.Context(), "acme", "web", "bob"))
	text, err := s.CreateToken(t.Context(), deployments.Token{Name: "laptop", Member: "bob", Organization: "acme"})
	done(t, err)
	if c, err := s.Authenticate(t.Context(), text); err != nil || !c.May(deployments.RoleDeployer, shop) {
		t.Fatalf("%+v, %v", c, err)
	}
	done(t, s.RemoveTeam(t.Context(), "acme", "web"))
	refused := func(when string) {
		t.Helper()
		if c, err := s.Authenticate(t.Context(), text); deployments.CodeOf(err) != deployments.CodeUnauthorized {
			t.Errorf("%s: %+v, %v", when, c, err)
		}
	}
	refused("after the team was removed")
	done(t, s.GrantTeam(t.Context(), "web", on(deployments.RoleAdmin)))
	refused("when there is another team of the name")
	done(t, s.JoinTeam(t.Context(), "acme", "web", "bob"))
	refused("when somebody else gets the name") // the member was gone in between
	if list, err := s.ListTeams(t.Context()); err != nil || len(list) != 1 || len(list[0].Members) != 1 {
		t.Errorf("the teams are %+v, %v", list, err)
	}
}

func TestADerivedTokenEndsWithTheOneThatItWasMadeFrom(t *testing.T) {
	s, now := people(t)
	g := on(deployments.RoleDeployer, "shop/*")
	_, err := s.CreateToken(t.Context(), deployments.Token{Name: "ann", Grant: &g, Expires: now.Add(time.Hour)})
	done(t, err)
	list, err := s.ListTokens(t.Context())
	done(t, err)
	from := &deployments.Origin{Token: "ann", Made: list[0].Created}
	text, err := s.DeriveToken(t.Context(), deployments.Token{Name: "cli", Origin: from, Expires: now.Add(24 * time.Hour)})
	done(t, err)
	c, err := s.Authenticate(t.Context(), text)
	if err != nil || c.Token != "ann.cli" || !c.May(deployments.RoleDeployer, shop) || c.May(deployments.RoleViewer, pay) {
		t.Fatalf("it may %+v, %v", c, err)
	}
	for name, o := range map[string]*deployments.Origin{"a derived one": {Token: "ann.cli", Made: c.Made},
		"another of the name": {Token: "ann", Made: from.Made.Add(time.Hour)}, "none": {Token: "bob"}} {
		if _, err := s.DeriveToken(t.Context(), deployments.Token{Name: "x", Origin: o}); err == nil {
			t.Errorf("a token is made from %s", name)
		}
	}
	for i := range maxDerived - 1 {
		_, err := s.DeriveToken(t.Context(), deployments.Token{Name: "n" + string(rune('a'+i%26)) + string(rune('a'+i/26)),
			Origin: from})
		done(t, err)
	}
	if _, err := s.DeriveToken(t.Context(), deployments.Token{Name: "toomany",
		Origin: from}); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("more than %d: %v", maxDerived, err)
	}
	*now = now.Add(2 * time.Hour)
	if _, err := s.Authenticate(t.Context(), text); deployments.CodeOf(err) != deployments.CodeUnauthorized {
		t.Errorf("after the end of the other one: %v", err)
	}
	done(t, s.CollectTokens(t.Context(), *now))
	if list, err := s.ListTokens(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d tokens are left, %v", len(list), err)
	}
}

func TestWhatIsRememberedOfIdentitiesIsRemovedOnceTheyHaveExpired(t *testing.T) {
	s, now := people(t)
	trust := deployments.Trust{Organization: "acme", Name: "ci", Issuer: "https://issuer.example",
		Conditions: []deployments.Condition{{Claim: "sub", Pattern: "x"}}, Grant: on(deployments.RoleViewer)}
	done(t, s.PutTrust(t.Context(), trust))
	list, err := s.TrustsOf(t.Context(), "acme")
	done(t, err)
	i := deployments.Identity{Issuer: trust.Issuer, Subject: "x", ID: "1", Expires: now.Add(time.Hour)}
	_, err = s.GiveToken(t.Context(), list[0], i, time.Minute)
	done(t, err)
	again := func() error {
		_, err := s.GiveToken(t.Context(), list[0], i, time.Minute)
		return err
	}
	done(t, s.CollectTokens(t.Context(), *now))
	if err := again(); deployments.CodeOf(err) != deployments.CodeUnauthorized {
		t.Errorf("it is exchanged twice: %v", err)
	}
	*now = now.Add(48 * time.Hour)
	done(t, s.CollectTokens(t.Context(), now.Add(-24*time.Hour)))
	l, err := s.sealed.Objects.List(t.Context(), bucket.Query{Prefix: exchangedFolder})
	tokens, _ := s.ListTokens(t.Context())
	if err != nil || len(l.Keys) != 0 || len(tokens) != 0 {
		t.Errorf("%v and %v are left, %v", l.Keys, tokens, err)
	}
}
