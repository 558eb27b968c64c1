package main

import (
	"context"
	"fmt"
)

// lookedFor is how many resources are looked for before they are created.
const lookedFor = 1000

// lookRatio names what it costs to look for them: the quotient of two medians.
const lookRatio = "1000 flat, create: with a settle rule / without"

// rule finds the resources of a row's program by their name.
const rule = `{"fake:index:Named": {"read": "property:name"}}`

// measureLooking creates the same resources with a settle rule for their type, by which each is looked for first, and
// without one, in turn.
func (s *stage) measureLooking(ctx context.Context, found results) error {
	kinds := []row{{name: "1000 flat, looked for", n: lookedFor}, {name: "1000 flat, not looked for", n: lookedFor}}
	const rounds = 3
	for round := range rounds {
		for i, r := range kinds {
			dir, err := s.project(r, ours, r.n, 0)
			if err == nil && round == 0 {
				err = s.house.prepare(ctx, dir)
			}
			if err == nil && round == 0 && i == 0 {
				_, err = output(ctx, dir, s.env, ours, "config", "set", "deployctl:settle", rule, "--stack", "dev")
			}
			if err == nil {
				err = playAll(ctx, r, s.house, dir, []operation{create, destroy}, found)
			}
			if err != nil {
				return err
			}
		}
	}
	fmt.Printf("\n### %d flat, looked for by a settle rule, and not (medians of %d)\n\n| | create, s |\n|---|---|\n",
		lookedFor, rounds)
	var medians []float64
	for _, r := range kinds {
		medians = append(medians, found.median(key(r.name, ours, create), wall))
		fmt.Printf("| %s | %.2f |\n", r.name, medians[len(medians)-1])
	}
	found.figure(lookRatio, medians[0]/medians[1])
	return nil
}
