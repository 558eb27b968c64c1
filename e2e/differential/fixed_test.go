package main

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// fixedSeed is what the programs of these tests are numbered from; random ones have smaller seeds.
const fixedSeed = 1_000_000

// register is a step that registers a resource.
func register(name, typ string, properties, options values) step {
	return step{Verb: "register", Name: name, Fields: values{"type": typ}, Properties: properties, Options: options}
}

// An update that goes on after errors does so after refusals, too. The stock engine does not, for which there is a
// rule.
func TestARefusalDoesNotEndAnUpdateThatGoesOnAfterErrors(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	a := arenaFor(t)
	small, large := values{"size": "1"}, values{"size": "2"}
	protected := values{"protect": "true"}
	base := update{Kind: "up", Steps: []step{
		register("r1", autoType, small, protected), register("r2", autoType, small, nil),
	}}
	programs := map[string]update{
		"two resources have one alias": {Steps: []step{
			register("r3", autoType, small, values{"aliases": "[{name: r2}]"}),
			register("r4", autoType, small, values{"aliases": "[{name: r2}]"}),
			register("r5", autoType, small, nil),
		}},
		"a protected resource would be replaced": {Replace: []string{"r1"}, Steps: []step{
			register("r1", autoType, small, protected), register("r2", autoType, large, nil),
			register("r5", autoType, small, nil),
		}},
		"a target needs what is none and does not exist": {Targets: []string{"r5"}, Steps: []step{
			register("r4", autoType, small, nil),
			register("r5", autoType, values{"links": "['${r4.arn}']"}, nil),
			register("r1", autoType, small, protected), register("r2", autoType, small, nil),
		}},
		"two resources have one name": {Steps: []step{
			register("r1", autoType, small, protected),
			{Verb: "register", Name: "r4", Fields: values{"type": autoType, "name": "r1"}, Properties: small},
			register("r5", autoType, small, nil),
		}},
	}
	seed := fixedSeed
	for name, refused := range programs {
		refused.Kind, refused.ContinueOnError = "up", true
		seed++
		p := program{Seed: seed, Updates: []update{base, refused}}
		o, err := a.compare(t.Context(), p)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case o.Differs != "":
			t.Errorf("%s: the engines differ %s", name, o.Differs)
		case o.Rules["a refusal in an update that goes on after errors"] != 1:
			t.Errorf("%s: deployctl has not gone on; %d updates were compared: %v", name, o.Updates, o.Rules)
		}
	}
}

// The program fails before it declares what is below a component whose type has changed. That is stored under its new
// name all the same, and so is known by it when the alias is gone.
func TestWhatIsBelowAComponentOfAnotherTypeKeepsItsPlaceWhenTheUpdateFails(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	a := arenaFor(t)
	const other = "app:index:Team"
	size := values{"size": "1"}
	component := func(name, typ string, options values) step {
		return step{Verb: "register", Name: name, Fields: values{"type": typ, "component": "true"}, Options: options}
	}
	below := []step{
		component("r2", componentType, values{"parent": "r1"}),
		register("r3", autoType, size, values{"parent": "r2"}),
		register("r4", autoType, values{"links": "['${r3.arn}']"}, nil),
	}
	p := program{Seed: fixedSeed + 100, Updates: []update{
		{Kind: "up", Steps: append([]step{component("r1", componentType, nil)}, below...)},
		{Kind: "up", Steps: []step{
			component("r1", other, values{"aliases": "[{type: '" + componentType + "'}]"}),
			{Verb: "fail", Name: "broken"},
		}},
		{Kind: "up", Steps: append([]step{component("r1", other, nil)}, below...)},
	}}
	switch o, err := a.compare(t.Context(), p); {
	case err != nil:
		t.Error(err)
	case o.Differs != "":
		t.Errorf("the engines differ %s", o.Differs)
	case o.Updates != 3 || o.Failed != 1:
		t.Errorf("%d updates were compared, of which %d failed", o.Updates, o.Failed)
	}
}

// The provider's account is replaced by one in another cloud, under another name. What it manages must not be left
// where nobody looks for it. The stock engine leaves it there, for which it has a rule.
func TestWhatARenamedAndReplacedProviderManagesIsNotLost(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	a := arenaFor(t)
	here, elsewhere := "'${config.fake:endpoint}'", "'${config.fake:endpoint}-elsewhere'"
	managed := register("r2", autoType, values{"size": "1"}, values{"provider": "r1"})
	moved := register("r1", providerType, values{"account": "a2", "endpoint": elsewhere},
		values{"aliases": "[{name: r1}]"})
	moved.Fields["name"] = "r9"
	p := program{Seed: fixedSeed, Updates: []update{
		{Kind: "up", Steps: []step{
			register("r1", providerType, values{"account": "a1", "endpoint": here}, nil), managed,
		}},
		{Kind: "up", Steps: []step{moved, managed}},
		{Kind: "destroy", Steps: []step{moved, managed}},
	}}
	sides, err := a.sides(p)
	if err != nil {
		t.Fatal(err)
	}
	defer a.leave(p, sides)
	for _, s := range sides {
		if _, err := a.clouds.open(filepath.Base(s.stage.dir) + "-elsewhere"); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	for _, u := range p.Updates {
		if err := a.playBoth(t.Context(), u, p, sides); err != nil {
			t.Fatal(err)
		}
		if sides[0].failed || sides[1].failed {
			t.Fatalf("%s failed: %v", u.Kind, slices.Concat(sides[0].errors, sides[1].errors))
		}
		found = append(found, ends(u, sides))
	}
	if want := []string{"", "what a replaced provider manages", ""}; !slices.Equal(found, want) {
		t.Errorf("the intended differences are %q", found)
	}
	if left := sides[0].objects; len(left) > 0 {
		t.Errorf("after the destroy there are still %v", left)
	}
	if left := sides[1].objects; len(left) != 1 {
		t.Errorf("the stock engine leaves %v, so the rule has lost its reason", left)
	}
}

// arenaFor is an arena for one test.
func arenaFor(t *testing.T) *arena {
	t.Helper()
	a, err := openArena(context.WithoutCancel(t.Context()), stockBinaries(t), "", false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}
