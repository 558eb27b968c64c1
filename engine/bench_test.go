package engine_test

import (
	"fmt"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

// A flat stack of n resources with one provider: the cost of a resource must not depend on their number.
func BenchmarkFlat(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		for _, parallel := range []int{10, n} {
			b.Run(fmt.Sprintf("%d resources, %d at once", n, parallel), func(b *testing.B) {
				for range b.N {
					base := flat(b, nil, n, parallel, engine.KindUp)
					base = flat(b, base, n, parallel, engine.KindUp)
					flat(b, base, n, parallel, engine.KindDestroy)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n*3), "µs/resource")
			})
		}
	}
}

// The preview of a flat stack of 5,000 resources: what the core needs to plan them. Their plans, which providers make,
// are ready at once.
func BenchmarkPlanning(b *testing.B) {
	const n = 5000
	for _, change := range []engine.ChangeKind{engine.ChangeNone, engine.ChangeUpdate, engine.ChangeReplace} {
		b.Run(fmt.Sprintf("%d resources, each: %s", n, change), func(b *testing.B) {
			base := flat(b, nil, n, 10, engine.KindUp)
			for b.Loop() {
				goal := engine.Goal{Kind: engine.KindUp, DryRun: true, Version: 1, Project: "proj", Stack: "dev", Parallel: 10}
				drive(b, engine.New(goal, base, nil), declared(base, n), change)
			}
		})
	}
}

// flat plays an update in which everything succeeds, and gives the states that it leaves.
func flat(tb testing.TB, base []engine.State, n, parallel int, kind engine.Kind) []engine.State {
	run := engine.New(engine.Goal{Kind: kind, Version: 1, Project: "proj", Stack: "dev", Parallel: parallel}, base, nil)
	if kind == engine.KindUp {
		return drive(tb, run, declared(base, n), engine.ChangeNone)
	}
	return drive(tb, run, nil, engine.ChangeNone)
}

// declared is what the program of a flat stack of n resources says: the first is their provider.
func declared(base []engine.State, n int) []engine.Event {
	events := []engine.Event{engine.RunStarted{Epoch: 1}}
	for i := range n {
		g := engine.Registration{Type: "test:x:R", Name: fmt.Sprintf("r%d", i), Custom: true,
			Inputs: bag([]string{"n=1"})}
		if i == 0 {
			g.Type, g.Name = "pulumi:providers:test", "p"
		} else if len(base) > 0 {
			g.Provider = snapshot.JoinReference(base[0].URN, base[0].ID)
			g.Dependencies = []urn.URN{base[0].URN}
		}
		g.Digest = g.Name
		events = append(events, engine.Registered{Epoch: 1, Seq: i + 1, Registration: g})
	}
	return events
}

// drive plays an update to its end, the oldest command first, and gives the states that it leaves. The plans of what is
// no provider show a change.
func drive(tb testing.TB, run *engine.Run, events []engine.Event, change engine.ChangeKind) []engine.State {
	n := max(0, len(events)-1)
	replies := 0
	for range 100_000 {
		for ready := run.Ready(); !ready.Empty(); ready = run.Ready() {
			for _, c := range ready.Start {
				switch c := c.(type) {
				case engine.Plan:
					p := engine.Planned{Op: c.Op, Inputs: c.Goal.Inputs, Diff: engine.Diff{Change: engine.ChangeNone}}
					if c.Provider != nil {
						p.Diff.Change = change
					}
					events = append(events, p)
				case engine.Step:
					events = append(events, engine.StepFinished{Op: c.Op, Outcome: engine.OutcomeDone, ID: "id"})
				}
			}
			if before := replies; before < n && before+len(ready.Replies) >= n {
				events = append(events, engine.ProgramExited{Epoch: 1})
			}
			replies += len(ready.Replies)
		}
		if _, done := run.Result(); done {
			states, _ := run.Snapshot()
			return states
		}
		if len(events) == 0 {
			tb.Fatal("nothing goes on")
		}
		run.Handle(events[0])
		events = events[1:]
	}
	tb.Fatal("it does not end")
	return nil
}
