package engine_test

import (
	"fmt"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/engine"
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

// flat plays an update in which everything succeeds, the oldest command first, and gives the states that it leaves.
func flat(tb testing.TB, base []engine.State, n, parallel int, kind engine.Kind) []engine.State {
	run := engine.New(engine.Goal{Kind: kind, Version: 1, Project: "proj", Stack: "dev", Parallel: parallel}, base, nil)
	var events []engine.Event
	if kind == engine.KindUp {
		events = append(events, engine.RunStarted{Epoch: 1})
		for i := range n {
			g := engine.Registration{Type: "test:x:R", Name: fmt.Sprintf("r%d", i), Custom: true,
				Inputs: bag([]string{"n=1"})}
			if i == 0 {
				g.Type, g.Name = "pulumi:providers:test", "p"
			} else if len(base) > 0 {
				g.Provider = engine.JoinReference(base[0].URN, base[0].ID)
				g.Dependencies = []urn.URN{base[0].URN}
			}
			g.Digest = g.Name
			events = append(events, engine.Registered{Epoch: 1, Seq: i + 1, Registration: g})
		}
	}
	replies := 0
	for range 10 * (n + 10) {
		for ready := run.Ready(); !ready.Empty(); ready = run.Ready() {
			for _, c := range ready.Start {
				switch c := c.(type) {
				case engine.Plan:
					events = append(events, engine.Planned{Op: c.Op, Inputs: c.Goal.Inputs,
						Diff: engine.Diff{Change: engine.ChangeNone}})
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
