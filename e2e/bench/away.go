package main

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/traffic"
)

// How far away the servers of the rows are that are measured at a distance.
const s3Away, temporalAway = 25 * time.Millisecond, 5 * time.Millisecond

// away are the rows that are measured at a distance. Each is created and destroyed once, because the stock CLI writes
// its state after each resource; what is between the two is repeated.
var away = []row{
	{name: "10 flat, far away", n: 10, reps: 3},
	{name: "chain of 20, far away", n: 20, chain: true, reps: 3},
	{name: "100 flat, far away", n: 100, reps: 3},
}

// measureAway starts the parts of the service with their servers far away, and measures against the stock CLI on the
// same S3 server. The embedded service must not run.
func (s *stage) measureAway(ctx context.Context, only *regexp.Regexp, reps int, found results) error {
	proxy, err := traffic.NewProxy(s.house.S3Endpoint, s3Away)
	if err != nil {
		return err
	}
	defer proxy.Close()
	temporal, err := traffic.NewAway(s.house.TemporalAddress, temporalAway)
	if err != nil {
		return err
	}
	defer temporal.Close()
	home := *s.house.Home
	home.TemporalAddress = temporal.Address
	parts, err := cluster.Start(ctx, ours, s.dir, s.env, &home, proxy.URL, 1)
	if err != nil {
		return err
	}
	defer parts.Stop()
	contestants := []contestant{remote{s, parts.Env}, &stock{name: stockS3, env: append(s.env[:len(s.env):len(s.env)],
		s.house.s3Environment(proxy.URL)...)}}
	for _, r := range away {
		if !only.MatchString(r.name) {
			continue
		}
		if reps > 0 {
			r.reps = reps
		}
		for _, c := range contestants {
			dir, err := s.project(r, c.String(), r.n, 0)
			if err != nil {
				return err
			}
			if err := c.prepare(ctx, dir); err != nil {
				return err
			}
			for _, op := range operations {
				times := r.reps
				if op == create || op == destroy {
					times = 1
				}
				for range times {
					m, err := counter{proxy}.count(func() (measured, error) { return c.play(ctx, dir, op) })
					if err != nil {
						return fmt.Errorf("%s: %w", c, err)
					}
					found.add(r.name, c.String(), op, m)
				}
			}
		}
		found.printAway(r)
	}
	return nil
}

// printAway shows a row: medians of seconds, and the requests to S3 of the last time, with those of them that wait for
// one another.
func (r results) printAway(w row) {
	fmt.Printf("\n### %s: S3 %s, Temporal %s\n\n| | deployctl s | stock, S3 s | ratio | requests | one after another | "+
		"of stock |\n|---|---|---|---|---|---|---|\n", w.name, s3Away, temporalAway)
	for _, op := range operations {
		mine, theirs := key(w.name, ours, op), key(w.name, stockS3, op)
		fmt.Printf("| %s | %.2f | %.2f | %.2f | %.0f | %.0f | %.0f |\n", op, r.median(mine, wall), r.median(theirs, wall),
			r.median(mine, wall)/r.median(theirs, wall), r.median(mine, requests), r.median(mine, chain),
			r.median(theirs, requests))
	}
}
