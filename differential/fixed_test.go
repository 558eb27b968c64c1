package main

import (
	"context"
	"testing"
)

// fixedSeed is what the programs of these tests are numbered from; random ones have smaller seeds.
const fixedSeed = 1_000_000

// register is a step that registers a resource.
func register(name, typ string, properties, options values) step {
	return step{Verb: "register", Name: name, Fields: values{"type": typ}, Properties: properties, Options: options}
}

// An update that goes on after errors does so only after steps that failed. What is refused ends it, on both engines.
func TestARefusalEndsAnUpdateThatGoesOnAfterErrors(t *testing.T) {
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
		case o.Updates != 2 || o.Failed != 1:
			t.Errorf("%s: %d updates were compared, of which %d failed", name, o.Updates, o.Failed)
		}
	}
}

// arenaFor is an arena for one test.
func arenaFor(t *testing.T) *arena {
	t.Helper()
	a, err := openArena(context.WithoutCancel(t.Context()), stockBinaries(t), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}
