package deployments

import (
	"cmp"
	"testing"
)

func TestAGrantIsForItsOrganizationAndItsStacks(t *testing.T) {
	shop := StackName{Organization: "acme", Project: "shop", Stack: "dev"}
	for _, c := range []struct {
		name   string
		grants []Grant
		role   Role
		stack  StackName
		want   bool
	}{
		{"nothing is allowed without a grant", nil, RoleViewer, shop, false},
		{"a role includes those before it", []Grant{{Role: RoleAdmin, Organization: "acme"}}, RoleViewer, shop, true},
		{"a role does not include those after it", []Grant{{Role: RoleViewer, Organization: "acme"}}, RoleDeployer,
			shop, false},
		{"another organization's grant does not count", []Grant{{Role: RoleAdmin, Organization: "initech"}}, RoleViewer,
			shop, false},
		{"an organization is not a glob", []Grant{{Role: RoleAdmin, Organization: "ac*"}}, RoleViewer, shop, false},
		{"every organization is every one", []Grant{{Role: RoleViewer, Organization: "*"}}, RoleViewer, shop, true},
		{"a glob is of project and stack", []Grant{{Role: RoleViewer, Organization: "acme",
			Stacks: []string{"shop/d*"}}}, RoleViewer, shop, true},
		{"a star does not match a slash", []Grant{{Role: RoleViewer, Organization: "acme", Stacks: []string{"*"}}},
			RoleViewer, shop, false},
		{"another project's glob does not count", []Grant{{Role: RoleViewer, Organization: "acme",
			Stacks: []string{"sho/*"}}}, RoleViewer, shop, false},
		{"an unknown role is none", []Grant{{Role: "root", Organization: "*"}}, RoleViewer, shop, false},
		{"an unknown role is not needed by anything", []Grant{{Role: RoleAdmin, Organization: "*"}}, "root", shop,
			false},
	} {
		if got := (Authority{Grants: [][]Grant{c.grants}}).May(c.role, c.stack); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestATokenWithAMemberMayDoWhatBothAllow(t *testing.T) {
	shop := StackName{Organization: "acme", Project: "shop", Stack: "dev"}
	admin, viewer := Grant{Role: RoleAdmin, Organization: "acme"}, Grant{Role: RoleViewer, Organization: "acme"}
	for _, c := range []struct {
		name   string
		token  Grant
		member []Grant
		want   bool
	}{
		{"both deploy", admin, []Grant{admin}, true},
		{"the token only looks", viewer, []Grant{admin}, false},
		{"the member only looks", admin, []Grant{viewer}, false},
		{"the member has nothing left", admin, nil, false},
	} {
		a := AuthorityOf(Token{Member: "ann", Organization: "acme", Grant: &c.token}, c.member)
		if got := a.May(RoleDeployer, shop); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestNobodyAdministersMoreThanTheyHave(t *testing.T) {
	all, acme := Grant{Role: RoleAdmin, Organization: "*"}, Grant{Role: RoleAdmin, Organization: "acme"}
	shop := Grant{Role: RoleAdmin, Organization: "acme", Stacks: []string{"shop/*"}}
	for _, c := range []struct {
		name  string
		has   Grant
		other []Grant
		want  bool
	}{
		{"an admin of all gives everything", all, []Grant{all, acme}, true},
		{"an admin of an organization gives it", acme, []Grant{acme, shop}, true},
		{"but not every organization", acme, []Grant{all}, false},
		{"and not one besides", acme, []Grant{acme, {Role: RoleViewer, Organization: "initech"}}, false},
		{"an admin of some stacks gives those", shop, []Grant{{Role: RoleViewer, Organization: "acme",
			Stacks: []string{"shop/*"}}}, true},
		{"but not the organization", shop, []Grant{{Role: RoleViewer, Organization: "acme"}}, false},
		{"a deployer gives nothing", Grant{Role: RoleDeployer, Organization: "*"},
			[]Grant{{Role: RoleViewer, Organization: "acme"}}, false},
		{"nothing at all is nobody's", all, nil, false},
	} {
		if got := (Authority{Grants: [][]Grant{{c.has}}}).Administers(c.other...); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestAGrantThatIsNotValidIsRejected(t *testing.T) {
	for _, g := range []Grant{
		{}, {Role: "root", Organization: "acme"}, {Role: RoleViewer}, {Role: RoleViewer, Organization: "a/b"},
		{Role: RoleViewer, Organization: "**"},
		{Role: RoleViewer, Organization: "acme", Stacks: []string{"dev"}},
		{Role: RoleViewer, Organization: "acme", Stacks: []string{"../*"}},
		{Role: RoleViewer, Organization: "acme", Stacks: []string{"a/b/c"}},
		{Role: RoleViewer, Organization: "acme", Stacks: []string{"[a-z]/x"}},
		{Role: RoleViewer, Organization: "acme", Stacks: make([]string, MaxStackGlobs+1)},
	} {
		if err := g.Validate(); CodeOf(err) != CodeInvalid || err == nil {
			t.Errorf("%+v: got %v", g, err)
		}
	}
}

func TestWhatTwoAllowIsWhatBothAllow(t *testing.T) {
	shop := StackName{Organization: "acme", Project: "shop", Stack: "dev"}
	all := Everything()
	acme := Authority{Grants: [][]Grant{{{Role: RoleViewer, Organization: "acme"}}}}
	both := all.And(acme)
	if !both.May(RoleViewer, shop) || both.May(RoleDeployer, shop) {
		t.Errorf("%+v", both)
	}
	if none := all.And(Authority{}); none.May(RoleViewer, shop) {
		t.Errorf("nothing and everything is %+v", none)
	}
	if again := both.And(acme).And(all); len(again.Grants) != 2 {
		t.Errorf("the same again makes it grow: %+v", again)
	}
}

func TestATokenIsLimitedToOneOrganizationOrToNone(t *testing.T) {
	acme, every := Grant{Role: RoleViewer, Organization: "acme"}, Grant{Role: RoleViewer, Organization: AnyOrganization}
	for _, c := range []struct {
		name   string
		token  Token
		within string // empty: there is no such token
	}{
		{"a role", Token{Grant: &acme}, "acme"},
		{"a role in all", Token{Grant: &every}, AnyOrganization},
		{"a member", Token{Member: "ann", Organization: "acme"}, "acme"},
		{"a member of all", Token{Member: "ann", Organization: AnyOrganization}, AnyOrganization},
		{"both", Token{Member: "ann", Organization: "acme", Grant: &acme}, "acme"},
		{"a member and a role elsewhere", Token{Member: "ann", Organization: "initech", Grant: &acme}, ""},
		{"a member and a role in all", Token{Member: "ann", Organization: "acme", Grant: &every}, ""},
		{"a member of no organization", Token{Member: "ann"}, ""},
		{"an organization without a member", Token{Organization: "acme", Grant: &acme}, ""},
		{"as if it was made from another", Token{Name: "ci.laptop", Grant: &acme}, ""},
		{"as if it was made from the local user's", Token{Name: LocalToken + ".laptop", Grant: &acme}, ""},
		{"the local user's", Token{Name: LocalToken, Grant: &acme}, ""},
	} {
		c.token.Name = cmp.Or(c.token.Name, "laptop")
		if err := c.token.Validate(); (err == nil) != (c.within != "") || err == nil && c.token.Within() != c.within {
			t.Errorf("%s: within %q, %v", c.name, c.token.Within(), err)
		}
	}
}

func TestNoAuthorityCoversATokenThatMayDoMore(t *testing.T) {
	acme := Authority{Grants: [][]Grant{{{Role: RoleAdmin, Organization: "acme"}}}}
	own, foreign := Grant{Role: RoleViewer, Organization: "acme"}, Grant{Role: RoleViewer, Organization: "initech"}
	for _, c := range []struct {
		name  string
		token Token
		has   []Grant
		want  bool
	}{
		{"its own organization's", Token{Grant: &own}, nil, true},
		{"another's", Token{Grant: &foreign}, nil, false},
		{"that of a member of every organization", Token{Member: "ann", Organization: AnyOrganization},
			[]Grant{{Role: RoleViewer, Organization: AnyOrganization}}, false},
		{"that of a member who may do more than its creator administered", Token{Member: "ann", Organization: "initech",
			Limit: [][]Grant{{own}}}, []Grant{foreign}, true},
		{"one without a scope", Token{}, nil, false},
		{"that of a member who is gone", Token{Member: "ann", Organization: "acme"}, nil, false},
	} {
		if got := acme.Covers(AuthorityOf(c.token, c.has)); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}
