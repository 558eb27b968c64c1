package engine_test

import (
	"slices"
	"testing"

	"github.com/deployctl/deployctl/engine"
)

// seedIn is the seed that a create of the same URN gets in a stack.
func seedIn(t *testing.T, id string) []byte {
	t.Helper()
	return seedOf(t, engine.Goal{Version: 1, Project: "proj", Stack: "dev", StackID: id})
}

// seedOf is the seed that a create of the same name gets in an update.
func seedOf(t *testing.T, goal engine.Goal) []byte {
	t.Helper()
	goal.Kind, goal.Parallel = engine.KindUp, 1
	run := engine.New(goal, nil, nil)
	run.Handle(engine.RunStarted{Epoch: 1})
	run.Handle(engine.Registered{Epoch: 1, Seq: 1, Registration: engine.Registration{Type: "test:x:R", Name: "db",
		Custom: true}})
	for _, c := range run.Ready().Start {
		if step, ok := c.(engine.Step); ok {
			return step.Seed
		}
	}
	t.Fatal("nothing is created")
	return nil
}

func TestStacksOfOneNameMakeOtherNamesAndOneStackTheSame(t *testing.T) {
	one := seedIn(t, "one")
	if !slices.Equal(one, seedIn(t, "one")) || slices.Equal(one, seedIn(t, "two")) || slices.Equal(one, seedIn(t, "")) {
		t.Error("a seed goes by the stack's id")
	}
}

func TestASeedOutlivesTheStateAndIsOfOneGeneration(t *testing.T) {
	key, u := []byte("key"), makeURN("", "test:x:R", "db")
	first := seedOf(t, engine.Goal{Version: 1, Project: "proj", Stack: "dev", StackID: "one", Identity: key})
	for name, goal := range map[string]engine.Goal{
		"a later version of another life": {Version: 7, Project: "proj", Stack: "dev", StackID: "two", Identity: key},
		"another name":                    {Version: 1, Project: "site", Stack: "live", StackID: "one", Identity: key},
	} {
		if !slices.Equal(first, seedOf(t, goal)) {
			t.Errorf("%s makes another one", name)
		}
	}
	for name, goal := range map[string]engine.Goal{
		"another identity":    {Identity: []byte("other")},
		"the next generation": {Identity: key, Generations: map[string]int{engine.Label(u): 1}},
		"no identity":         {Version: 1, Project: "proj", Stack: "dev", StackID: "one"},
	} {
		if slices.Equal(first, seedOf(t, goal)) {
			t.Errorf("%s makes the same one", name)
		}
	}
}
