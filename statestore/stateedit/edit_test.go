package stateedit

import (
	"reflect"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

const thing = "cloud:index:Thing"

func urnOf(typ tokens.Type, name string) urn.URN { return urn.New("dev", "shop", "", typ, name) }

// shop is a state: the root, a provider, a network, a server on it with a child, and an older copy of the server.
func shop() []engine.State {
	root := engine.State{URN: urnOf(rootType, "shop-dev"), Type: rootType}
	provider := engine.State{URN: urnOf("pulumi:providers:cloud", "east"), Type: "pulumi:providers:cloud", Custom: true,
		ID: "p1", Parent: root.URN}
	ref := snapshot.JoinReference(provider.URN, provider.ID)
	custom := func(name, id string) engine.State {
		return engine.State{URN: urnOf(thing, name), Type: thing, Custom: true, ID: id, Parent: root.URN, Provider: ref}
	}
	net, web, old := custom("net", "n1"), custom("web", "w2"), custom("web", "w1")
	web.Dependencies = []urn.URN{net.URN}
	web.PropertyDependencies = []engine.PropertyDependency{{Property: "subnet", URNs: []urn.URN{net.URN}}}
	old.Delete = true
	disk := custom("disk", "d1")
	disk.URN, disk.Parent = urn.New("dev", "shop", thing, thing, "disk"), web.URN
	disk.DeletedWith = web.URN
	return keyed(root, provider, net, web, disk, old)
}

// keyed gives states the keys of a base.
func keyed(states ...engine.State) []engine.State {
	for i := range states {
		states[i].Key = snapshot.BaseKey(i)
	}
	return states
}

// described lists states by name and id, with their marks.
func described(states []engine.State) string {
	var out []string
	for _, s := range states {
		text := s.URN.Name()
		if s.ID != "" {
			text += "=" + s.ID
		}
		for i, set := range []bool{s.Protect, s.Taint, s.Delete} {
			if set {
				text += string("!~-"[i])
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestAnEditChangesWhatItNamesAndBreaksNothing(t *testing.T) {
	net, web := string(urnOf(thing, "net")), string(urnOf(thing, "web"))
	disk := string(urn.New("dev", "shop", thing, thing, "disk"))
	protected := func(states []engine.State) { states[4].Protect = true }
	for name, c := range map[string]struct {
		prepare func([]engine.State)
		edit    deployments.EditRequest
		want    string           // the states afterwards
		code    deployments.Code // of the error
		says    []string
	}{
		"protect": {edit: deployments.EditRequest{Edit: deployments.EditProtect, Resources: []string{net}},
			want: "shop-dev east=p1 net=n1! web=w2 disk=d1 web=w1-"},
		"protect all but the stack itself": {edit: deployments.EditRequest{Edit: deployments.EditProtect, All: true},
			want: "shop-dev east=p1! net=n1! web=w2! disk=d1! web=w1!-"},
		"unprotect what is not protected": {edit: deployments.EditRequest{Edit: deployments.EditUnprotect,
			Resources: []string{net}}, want: "shop-dev east=p1 net=n1 web=w2 disk=d1 web=w1-"},
		"taint one of two copies": {edit: deployments.EditRequest{Edit: deployments.EditTaint, Resources: []string{web},
			ID: "w2"}, want: "shop-dev east=p1 net=n1 web=w2~ disk=d1 web=w1-"},
		"delete what nothing depends on": {edit: deployments.EditRequest{Edit: deployments.EditDelete,
			Resources: []string{disk}}, want: "shop-dev east=p1 net=n1 web=w2 web=w1-"},
		"delete a copy": {edit: deployments.EditRequest{Edit: deployments.EditDelete, Resources: []string{web},
			ID: "w1"}, want: "shop-dev east=p1 net=n1 web=w2 disk=d1"},
		"delete one of two copies without saying which": {edit: deployments.EditRequest{Edit: deployments.EditDelete,
			Resources: []string{web}}, code: deployments.CodeInvalid, says: []string{"2 copies", "w2", "w1 (waits"}},
		"delete what others depend on": {edit: deployments.EditRequest{Edit: deployments.EditDelete,
			Resources: []string{net}}, code: deployments.CodeInvalid,
			says: []string{"cannot be deleted", web, disk, "--target-dependents"}},
		"delete it with its dependents": {edit: deployments.EditRequest{Edit: deployments.EditDelete,
			Resources: []string{net}, Dependents: true}, want: "shop-dev east=p1 web=w1-"},
		"delete a protected dependent": {prepare: protected, edit: deployments.EditRequest{Edit: deployments.EditDelete,
			Resources: []string{net}, Dependents: true}, code: deployments.CodeInvalid,
			says: []string{disk, "protection", "--force"}},
		"delete it by force": {prepare: protected, edit: deployments.EditRequest{Edit: deployments.EditDelete,
			Resources: []string{net}, Dependents: true, Force: true}, want: "shop-dev east=p1 web=w1-"},
		"delete the provider of others": {edit: deployments.EditRequest{Edit: deployments.EditDelete,
			Resources: []string{string(urnOf("pulumi:providers:cloud", "east"))}}, code: deployments.CodeInvalid,
			says: []string{net, web, "depend on it"}},
		"delete all": {edit: deployments.EditRequest{Edit: deployments.EditDelete, All: true}, want: ""},
		"delete what is not there": {edit: deployments.EditRequest{Edit: deployments.EditDelete,
			Resources: []string{net + "x"}}, code: deployments.CodeNotFound,
			says: []string{"no resource " + net + "x"}},
		"rename": {edit: deployments.EditRequest{Edit: deployments.EditRename, Resources: []string{net}, Name: "lan"},
			want: "shop-dev east=p1 lan=n1 web=w2 disk=d1 web=w1-"},
		"rename to a name with colons, as a program may give": {edit: deployments.EditRequest{Edit: deployments.EditRename,
			Resources: []string{net}, Name: "x::y"},
			want: "shop-dev east=p1 x::y=n1 web=w2 disk=d1 web=w1-"},
		"rename a provider": {edit: deployments.EditRequest{Edit: deployments.EditRename,
			Resources: []string{string(urnOf("pulumi:providers:cloud", "east"))}, Name: "west"},
			want: "shop-dev west=p1 net=n1 web=w2 disk=d1 web=w1-"},
		"rename all copies": {edit: deployments.EditRequest{Edit: deployments.EditRename, Resources: []string{web},
			Name: "www"}, want: "shop-dev east=p1 net=n1 www=w2 disk=d1 www=w1-"},
		"rename to a name that is taken": {edit: deployments.EditRequest{Edit: deployments.EditRename,
			Resources: []string{net}, Name: "web"}, code: deployments.CodeExists, says: []string{web + " already"}},
		"rename the stack itself": {edit: deployments.EditRequest{Edit: deployments.EditRename,
			Resources: []string{string(urnOf(rootType, "shop-dev"))}, Name: "x"}, code: deployments.CodeInvalid,
			says: []string{"deployctl stack rename"}},
		"repair what is in order": {edit: deployments.EditRequest{Edit: deployments.EditRepair},
			want: "shop-dev east=p1 net=n1 web=w2 disk=d1 web=w1-"},
		"repair an order": {prepare: func(s []engine.State) { s[2], s[3] = s[3], s[2] },
			edit: deployments.EditRequest{Edit: deployments.EditRepair},
			want: "shop-dev east=p1 net=n1 web=w2 disk=d1 web=w1-"},
		"repair a reference": {prepare: func(s []engine.State) { s[2].DeletedWith = urnOf(thing, "gone") },
			edit: deployments.EditRequest{Edit: deployments.EditRepair},
			want: "shop-dev east=p1 net=n1 web=w2 disk=d1 web=w1-"},
	} {
		t.Run(name, func(t *testing.T) {
			states, before := shop(), shop()
			if c.prepare != nil {
				c.prepare(states)
				c.prepare(before)
			}
			got, changes, err := Apply(states, c.edit)
			if deployments.CodeOf(err) != c.code {
				t.Fatalf("got %v", err)
			}
			for _, text := range c.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("it does not say %q but: %v", text, err)
				}
			}
			if !reflect.DeepEqual(states, before) {
				t.Error("the states that it was given are changed")
			}
			if err != nil {
				return
			}
			if text := described(got); text != c.want {
				t.Errorf("the state is %s\nwant        %s", text, c.want)
			}
			if err := snapshot.Verify(got); err != nil {
				t.Errorf("the state is not valid: %v", err)
			}
			if same := reflect.DeepEqual(got, states); same != (len(changes) == 0) {
				t.Errorf("it is unchanged: %v, and the changes are %q", same, changes)
			}
		})
	}
}

func TestAMoveTakesAlongWhatIsBelowAndCopiesProviders(t *testing.T) {
	same := func(engine.State, engine.State) (bool, error) { return true, nil }
	request := deployments.MoveRequest{
		From:      deployments.StackName{Organization: "o", Project: "shop", Stack: "dev"},
		To:        deployments.StackName{Organization: "o", Project: "net", Stack: "prod"},
		Resources: []string{string(urnOf(thing, "web"))},
	}
	m, err := Move(Stacks{From: shop(), Same: same}, request)
	if err != nil {
		t.Fatal(err)
	}
	if got := described(m.Left); got != "shop-dev east=p1 net=n1" {
		t.Errorf("what stays is %s", got)
	}
	if got := described(m.Added); got != "net-prod east=p1 web=w2 disk=d1 web=w1-" {
		t.Errorf("what is added is %s", got)
	}
	if err := snapshot.Verify(keyed(m.Added...)); err != nil {
		t.Errorf("what is added is not valid: %v", err)
	}
	for _, s := range m.Added {
		if s.URN.Stack() != "prod" || s.URN.Project() != "net" || len(s.Dependencies) > 0 {
			t.Errorf("%s depends on %v", s.URN, s.Dependencies)
		}
	}
	if disk := m.Added[3]; disk.URN.QualifiedType() != thing+"$"+thing || disk.Parent != m.Added[2].URN {
		t.Errorf("the child is %s, its parent %s", disk.URN, disk.Parent)
	}

	again, err := Move(Stacks{From: shop(), To: m.Added, Same: same}, request)
	if err != nil || len(again.Added) > 0 || described(again.Left) != described(m.Left) {
		t.Errorf("an interrupted move that is repeated adds %s, and leaves %s: %v", described(again.Added),
			described(again.Left), err)
	}

	other := func(engine.State, engine.State) (bool, error) { return false, nil }
	if _, err := Move(Stacks{From: shop(), To: m.Added, Same: other}, request); deployments.CodeOf(err) !=
		deployments.CodeInvalid {
		t.Errorf("a provider with another configuration: %v", err)
	}
	m.Added[2].ID = "another"
	if _, err := Move(Stacks{From: shop(), To: m.Added, Same: same}, request); deployments.CodeOf(err) !=
		deployments.CodeExists {
		t.Errorf("another resource by the same name: %v", err)
	}
	for _, u := range []urn.URN{urnOf(rootType, "shop-dev"), urnOf("pulumi:providers:cloud", "east")} {
		request.Resources = []string{string(u)}
		if _, err := Move(Stacks{From: shop(), Same: same}, request); deployments.CodeOf(err) !=
			deployments.CodeInvalid {
			t.Errorf("%s: %v", u, err)
		}
	}
}
