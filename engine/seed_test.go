package engine_test

import (
	"slices"
	"testing"

	"github.com/deployctl/deployctl/engine"
)

// seedIn is the seed that a create of the same URN gets in a stack.
func seedIn(t *testing.T, id string) []byte {
	t.Helper()
	run := engine.New(engine.Goal{Kind: engine.KindUp, Version: 1, Project: "proj", Stack: "dev", StackID: id,
		Parallel: 1}, nil, nil)
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
