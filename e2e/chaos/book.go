package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/deployctl/deployctl/e2e/seeds"
)

// outcome is what a seed came to.
type outcome struct {
	Claim string `json:"claim"`
	Seed  int    `json:"seed"` // 0: the control
	// Build is the digest of the binary that was tried.
	Build   string   `json:"build"`
	Seconds float64  `json:"seconds"`
	Kills   []killed `json:"kills,omitempty"`
	Counts  counts   `json:"counts"`
	// Tally is what else the claim counts.
	Tally  map[string]int `json:"tally,omitempty"`
	Times  []float64      `json:"times,omitempty"`  // seconds, of what the claim measures
	Failed string         `json:"failed,omitempty"` // why the claim does not hold here
}

// counts are what must be nothing.
type counts struct {
	Duplicates int `json:"duplicates"`
	Leaks      int `json:"leaks"`
	Commands   int `json:"commands"` // that a human had to type
}

func (c counts) String() string {
	return fmt.Sprintf("%d duplicates, %d leaks, %d human commands", c.Duplicates, c.Leaks, c.Commands)
}

// broken says so when they are not nothing.
func (c counts) broken() []string {
	if c == (counts{}) {
		return nil
	}
	return []string{"something was made twice, was left over, or had to be typed"}
}

// totals sums outcomes up.
func totals(all []outcome) (tally map[string]int, sum counts) {
	tally = map[string]int{}
	for _, o := range all {
		sum.Duplicates += o.Counts.Duplicates
		sum.Leaks += o.Counts.Leaks
		sum.Commands += o.Counts.Commands
		for what, n := range o.Tally {
			tally[what] += n
		}
	}
	return tally, sum
}

// book keeps outcomes, a line each. Safe for concurrent use.
type book struct {
	dir   string
	build string

	mu sync.Mutex
}

func openBook(dir string) (*book, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	build, err := seeds.Build(binary)
	return &book{dir: dir, build: build}, err
}

func (b *book) path(claim string) string { return filepath.Join(b.dir, claim+".jsonl") }

// known returns the outcomes of this build that held.
func (b *book) known(claim string) (map[int]outcome, error) {
	played, err := seeds.Read(b.path(claim), func(o outcome) bool { return o.Build == b.build && o.Failed == "" })
	known := map[int]outcome{}
	for _, o := range played {
		known[o.Seed] = o
	}
	return known, err
}

func (b *book) add(o outcome) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return seeds.Append(b.path(o.Claim), o)
}

// play plays the seeds that are not known, several at once, each in a world of its own for the time, and the control.
func play(ctx context.Context, c claim, seeds []int, atOnce int, b *book) (all []outcome, peer *outcome, err error) {
	known, err := b.known(c.name)
	if err != nil {
		return nil, nil, err
	}
	var todo []int
	if _, ok := known[0]; !ok && c.control != nil {
		todo = append(todo, 0)
	}
	for _, seed := range seeds {
		if _, ok := known[seed]; !ok {
			todo = append(todo, seed)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		mu      sync.Mutex
		workers sync.WaitGroup
	)
	next := func() (seed int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(todo) == 0 || ctx.Err() != nil {
			return 0, false
		}
		seed, todo = todo[0], todo[1:]
		return seed, true
	}
	for range min(atOnce, len(todo)) {
		workers.Go(func() {
			var w *world
			defer func() { w.close() }()
			for seed, ok := next(); ok; seed, ok = next() {
				o, err := playOne(ctx, c, &w, seed, b)
				if err != nil {
					cancel(fmt.Errorf("seed %d: %w", seed, err))
					return
				}
				mu.Lock()
				known[seed] = o
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	for _, seed := range seeds {
		all = append(all, known[seed])
	}
	if o, ok := known[0]; ok {
		peer = &o
	}
	return all, peer, nil
}

// playOne plays a seed in the world, which is made when there is none. One in which a claim was broken is left as it
// is.
func playOne(ctx context.Context, c claim, w **world, seed int, b *book) (o outcome, err error) {
	if *w == nil {
		if *w, err = newWorld(ctx, c.env...); err != nil {
			return o, err
		}
	}
	begin := time.Now()
	if seed == 0 {
		o, err = c.control(ctx, *w)
	} else {
		o, err = c.run(ctx, *w, seed)
	}
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	if err != nil {
		o.Failed = err.Error()
	}
	o.Claim, o.Seed, o.Build, o.Seconds = c.name, seed, b.build, time.Since(begin).Seconds()
	told := "held"
	if o.Failed != "" {
		told = fmt.Sprintf("BROKEN: %s\n  look into %s", o.Failed, (*w).dir)
		(*w).abandon()
		*w = nil
	}
	fmt.Printf("%s %d: %.0f s, %s\n", c.name, seed, o.Seconds, told)
	return o, b.add(o)
}
