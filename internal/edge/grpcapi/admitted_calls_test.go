package grpcapi_test

import (
	"fmt"
	"slices"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
)

// act is one call by the holder of a token. Each kind of call is made on the store, and once it was accepted on the
// model, where it must be one that the holder may make.
type act struct {
	*world
	by           *theToken
	administered grpcapi.Administered
	organization string
}

var kinds = []struct {
	method string
	call   func(act) error
}{
	{api.Members_GrantMember_FullMethodName, act.grantMember},
	{api.Members_GrantMember_FullMethodName, act.grantMember},
	{api.Members_RemoveMember_FullMethodName, act.removeMember},
	{api.Tokens_CreateToken_FullMethodName, act.createToken},
	{api.Tokens_CreateToken_FullMethodName, act.createMembersToken},
	{api.Tokens_CreateToken_FullMethodName, act.createMembersToken},
	{api.Tokens_DeriveToken_FullMethodName, act.deriveToken},
	{api.Tokens_RemoveToken_FullMethodName, act.removeToken},
	{api.Teams_GrantTeam_FullMethodName, act.grantTeam},
	{api.Teams_RemoveTeam_FullMethodName, act.removeTeam},
	{api.Teams_JoinTeam_FullMethodName, act.joinTeam},
	{api.Teams_LeaveTeam_FullMethodName, act.leaveTeam},
	{api.Trusts_PutTrust_FullMethodName, act.putTrust},
	{api.Trusts_RemoveTrust_FullMethodName, act.removeTrust},
}

// step makes one call, mostly about an organization that the caller administers.
func (w *world) step() {
	if w.random.IntN(16) == 0 {
		w.exchange()
		return
	}
	kind := pick(w, kinds...)
	rule, _ := grpcapi.RuleOf(kind.method)
	a, caller := act{world: w}, deployments.Caller{}
	for i := 0; a.by == nil && i < len(w.tokens); i++ { // few of the tokens are an admin's
		x := pick(w, w.tokens...)
		var err error
		if caller, err = w.store.Access.Authenticate(w.t.Context(), x.text); err == nil && rule.Allow(caller, false) == nil {
			a.by = x
		}
	}
	if a.by == nil {
		return
	}
	if a.organization = a.by.within; a.organization == "*" || w.random.IntN(8) == 0 {
		a.organization = pick(w, "acme", "evil", "acme", "evil", "*")
	}
	a.administered = grpcapi.Administered{Service: w.service, Caller: caller}
	if err := kind.call(a); err != nil && deployments.CodeOf(err) == deployments.CodeInternal {
		w.t.Errorf("%s: %v", kind.method, err)
	}
	for _, m := range w.members {
		m.gone = m.gone || len(m.grants()) == 0
	}
}

// grant is one for the organization.
func (a act) grant() deployments.Grant {
	return deployments.Grant{Role: pick(a.world, everyRole...), Organization: a.organization,
		Stacks: pick(a.world, nil, nil, []string{"shop/*"}, []string{"pay/*"})}
}

// accepted notes a call. Whoever makes it must administer what it gives and takes.
func (a act) accepted(what string, grants ...deployments.Grant) {
	a.said = append(a.said, fmt.Sprintf("%s: %s of %s, which is %+v", a.by.name, what, a.organization, grants))
	for _, g := range grants {
		if !a.by.gives(g) {
			a.t.Errorf("%s does not administer %+v", a.by.name, g)
		}
	}
}

// member returns the member of a name, as things are now.
func (a act) member(name string) *theMember {
	for _, m := range a.members {
		if !m.gone && m.organization == a.organization && m.name == name {
			return m
		}
	}
	return nil
}

// added returns the member of a name, who is made if there is none.
func (a act) added(name string) *theMember {
	m := a.member(name)
	if m == nil {
		m = &theMember{organization: a.organization, name: name}
		a.members = append(a.members, m)
	}
	return m
}

func (a act) grantMember() error {
	name, g := pick(a.world, "ann", "bob"), a.grant()
	if err := a.administered.GrantMember(a.t.Context(), name, g); err != nil {
		return err
	}
	m := a.added(name)
	a.accepted("grant "+name, append(m.grants(), g)...)
	m.grant = &g
	return nil
}

func (a act) removeMember() error {
	name := pick(a.world, "ann", "bob")
	if err := a.administered.RemoveMember(a.t.Context(), name, a.organization); err != nil {
		return err
	}
	m := a.added(name)
	a.accepted("remove "+name, m.grants()...)
	m.gone = true
	return nil
}

// kept notes a token that was made.
func (a act) kept(x *theToken, text string) {
	x.text = text
	a.tokens = append(a.tokens, x)
}

func (a act) createToken() error {
	g := a.grant()
	x := &theToken{name: a.name(), grant: &g, within: a.organization, admitted: a.by.administered()}
	text, err := a.administered.CreateToken(a.t.Context(), deployments.Token{Name: x.name, Grant: &g})
	if err != nil {
		return err
	}
	a.accepted("token "+x.name, g)
	a.kept(x, text)
	return nil
}

func (a act) createMembersToken() error {
	name := pick(a.world, "ann", "bob")
	x := &theToken{name: a.name(), within: a.organization, admitted: a.by.administered()}
	if g := a.grant(); a.random.IntN(4) == 0 {
		x.grant = &g
	}
	text, err := a.administered.CreateToken(a.t.Context(), deployments.Token{Name: x.name, Member: name,
		Organization: a.organization, Grant: x.grant})
	if err != nil {
		return err
	}
	x.member = a.added(name)
	if a.accepted("token " + x.name + " of " + name); !a.by.over(x) {
		a.t.Errorf("%s has made the token %s, which may do what %[1]s does not administer", a.by.name, x.name)
	}
	a.kept(x, text)
	return nil
}

func (a act) deriveToken() error {
	name := a.name()
	text, err := a.administered.DeriveToken(a.t.Context(), deployments.Token{Name: name})
	if err != nil {
		return err
	}
	a.accepted("derive " + name)
	a.kept(&theToken{name: a.by.name + "." + name, from: a.by, within: a.by.within, admitted: a.by.admitted}, text)
	return nil
}

func (a act) removeToken() error {
	x := pick(a.world, a.tokens...)
	err := a.administered.RemoveToken(a.t.Context(), x.name)
	if err != nil {
		if !x.gone && a.by.whole(x.within) {
			a.t.Errorf("%s cannot end the token %s of %s: %v", a.by.name, x.name, x.within, err)
		}
		return err
	}
	if a.accepted("remove " + x.name); !a.by.over(x) {
		a.t.Errorf("%s has ended the token %s of %s", a.by.name, x.name, x.within)
	}
	x.gone = true
	return nil
}

// found returns the thing of a name, as things are now.
func found[T any](all []T, of func(T) *theTeam, organization, name string) (none T) {
	i := slices.IndexFunc(all, func(v T) bool {
		t := of(v)
		return !t.gone && t.organization == organization && t.name == name
	})
	if i < 0 {
		return none
	}
	return all[i]
}

func (a act) team(name string) *theTeam {
	return found(a.teams, func(t *theTeam) *theTeam { return t }, a.organization, name)
}

func (a act) trust(name string) *theTrust {
	return found(a.trusts, func(t *theTrust) *theTeam { return &t.theTeam }, a.organization, name)
}

func (a act) grantTeam() error {
	name, g := "web", a.grant()
	if err := a.administered.GrantTeam(a.t.Context(), name, g); err != nil {
		return err
	}
	t := a.team(name)
	if t == nil {
		t = &theTeam{organization: a.organization, name: name, grant: g}
		a.teams = append(a.teams, t)
	}
	a.accepted("team "+name, t.grant, g)
	t.grant = g
	return nil
}

func (a act) removeTeam() error {
	name := "web"
	if err := a.administered.RemoveTeam(a.t.Context(), a.organization, name); err != nil {
		return err
	}
	t := a.team(name)
	a.accepted("remove team "+name, t.grant)
	t.gone = true
	return nil
}

func (a act) joinTeam() error {
	team, name := "web", pick(a.world, "ann", "bob")
	if err := a.administered.JoinTeam(a.t.Context(), a.organization, team, name); err != nil {
		return err
	}
	m, t := a.added(name), a.team(team)
	a.accepted("join "+team+" "+name, append(m.grants(), t.grant)...)
	m.teams = append(slices.DeleteFunc(m.teams, func(of *theTeam) bool { return of == t }), t)
	return nil
}

func (a act) leaveTeam() error {
	team, name := "web", pick(a.world, "ann", "bob")
	if err := a.administered.LeaveTeam(a.t.Context(), a.organization, team, name); err != nil {
		return err
	}
	t := a.team(team)
	a.accepted("leave "+team+" "+name, t.grant)
	if m := a.member(name); m != nil {
		m.teams = slices.DeleteFunc(m.teams, func(of *theTeam) bool { return of == t })
	}
	return nil
}

func (a act) putTrust() error {
	name, g := pick(a.world, "ci", "cd"), a.grant()
	if err := a.administered.PutTrust(a.t.Context(), deployments.Trust{Organization: a.organization, Name: name,
		Issuer: "https://issuer.example", Conditions: []deployments.Condition{{Claim: "sub", Pattern: "x"}},
		Grant: g}); err != nil {
		return err
	}
	t := a.trust(name)
	if t == nil {
		t = &theTrust{theTeam: theTeam{organization: a.organization, name: name, grant: g}}
		a.trusts = append(a.trusts, t)
	}
	a.accepted("trust "+name, t.grant, g)
	t.grant, t.admitted = g, a.by.administered()
	return nil
}

func (a act) removeTrust() error {
	name := pick(a.world, "ci", "cd")
	if err := a.administered.RemoveTrust(a.t.Context(), a.organization, name); err != nil {
		return err
	}
	t := a.trust(name)
	a.accepted("remove trust "+name, t.grant)
	t.gone = true
	return nil
}

// exchange has an identity get a token by one of the trusts.
func (w *world) exchange() {
	organization := pick(w, organizations...)
	list, err := w.store.Access.TrustsOf(w.t.Context(), organization)
	if err != nil || len(list) == 0 {
		return
	}
	by := pick(w, list...)
	given, err := w.store.Access.GiveToken(w.t.Context(), by, deployments.Identity{Issuer: by.Issuer, Subject: "x",
		ID: w.name(), Expires: w.now.Add(time.Hour)}, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	t := act{world: w, organization: organization}.trust(by.Name)
	g := t.grant
	w.said = append(w.said, "exchange by "+organization+"/"+by.Name+": "+given.Name)
	w.tokens = append(w.tokens, &theToken{name: given.Name, text: given.Text, trust: t, grant: &g, within: organization,
		admitted: t.admitted})
}
