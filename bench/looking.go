package main

import (
	"context"
	"fmt"
	"slices"
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
	kinds := []row{{name: "1000 flat, looked for", n: lookedFor, reps: 3}, {name: "1000 flat, unseen", n: lookedFor, reps: 3}}
	for round := range kinds[0].reps {
		for i, r := range kinds {
			dir, err := s.project(r, ours, r.n, 0)
			if err != nil {
				return err
			}
			if round == 0 {
				if err := s.house.prepare(ctx, dir); err != nil {
					return err
				}
			}
			if round == 0 && i == 0 {
				if _, err := output(ctx, dir, s.env, ours, "config", "set", "deployctl:settle", rule, "--stack", "dev"); err != nil {
					return err
				}
			}
			if err := playAll(ctx, r, s.house, dir, []operation{create, destroy}, found); err != nil {
				return err
			}
		}
	}
	var medians []float64
	fmt.Printf("\n### %d flat, looked for by a settle rule, and not\n\n| | wall s of create | (min–max) |\n|---|---|---|\n",
		lookedFor)
	for _, r := range kinds {
		k := key(r.name, ours, create)
		medians = append(medians, found.median(k, wall))
		walls := []float64{}
		for _, m := range found[k] {
			walls = append(walls, m.wall)
		}
		fmt.Printf("| %s | %.2f | %.2f–%.2f |\n", r.name, medians[len(medians)-1], slices.Min(walls), slices.Max(walls))
	}
	found.figure(lookRatio, medians[0]/medians[1])
	return nil
}
