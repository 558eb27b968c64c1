package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
)

// toolsSteps is how many commands the history of a stack has.
const toolsSteps = 6

// toolsStep is a command of a history, after an edit of the program.
type toolsStep struct {
	verb  string
	nodes []node
}

// history makes a random history of a stack.
func toolsHistory(r *rand.Rand) (steps []toolsStep) {
	nodes := graph(r, 8, named, auto, tagged)
	for i := range toolsSteps {
		step := toolsStep{verb: "up"}
		switch n := r.IntN(8); {
		case i == 0:
		case n == 0:
			step.verb = "destroy"
		case n == 1:
			step.verb = "refresh"
		case n < 6:
			changed := make([]node, len(nodes))
			for i, at := range nodes {
				changed[i] = at
				changed[i].Properties = map[string]any{}
				maps.Copy(changed[i].Properties, at.Properties)
			}
			changed[r.IntN(len(changed))].Properties["size"] = 10 + r.IntN(90)
			nodes = changed[:max(4, len(changed)-r.IntN(2))] // what the last ones need stays
		}
		step.nodes = nodes
		steps = append(steps, step)
	}
	return steps
}

// interleaved plays a seed of a stack that two tools update in turn: it comes to the same as with one.
func interleaved(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := rand.New(rand.NewPCG(uint64(seed), 21))
	steps := toolsHistory(r)
	chosen := make([]bool, len(steps)) // the stock CLI
	for i := range chosen {
		chosen[i] = r.IntN(2) == 0
	}
	alone := make([]bool, len(steps))
	for i := range alone {
		alone[i] = seed%2 == 0
	}
	two, err := w.playTools(ctx, fmt.Sprintf("tools-%d", seed), steps, chosen)
	if err != nil {
		return o, err
	}
	one, err := w.playTools(ctx, fmt.Sprintf("tools-%d-alone", seed), steps, alone)
	if err != nil {
		return o, err
	}
	o.Counts.Leaks = two.Leaks
	o.Tally = map[string]int{"commands": len(steps)}
	return o, two.differs(one)
}

// playTools plays a history on a new stack, and returns where that has brought it.
func (w *world) playTools(ctx context.Context, name string, steps []toolsStep, stocks []bool) (r reached, err error) {
	s, err := w.newStage(ctx, name, "yaml", steps[0].nodes)
	if err != nil {
		return r, err
	}
	defer s.close()
	c, err := s.newStock()
	if err != nil {
		return r, err
	}
	defer c.close()
	for i, step := range steps {
		if err := write(s.dir, project, "yaml", step.nodes); err != nil {
			return r, err
		}
		if stocks[i] {
			_, err = c.runs(ctx, changes(step.verb)...)
		} else {
			_, err = s.deployctl(ctx, changes(step.verb)...)
		}
		if err != nil {
			return r, fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	if r, err = s.reached(ctx); err != nil {
		return r, err
	}
	if r.Leaks > 0 {
		err = errors.New("objects are left over")
	}
	return r, err
}

// toolsLine sums them up.
func toolsLine(all []outcome, _ bool) (string, []string) {
	sum, n := totals(all)
	return fmt.Sprintf("%d stacks, %d commands of two tools in turn: as with one tool, %s", len(all), sum["commands"], n),
		n.broken()
}
