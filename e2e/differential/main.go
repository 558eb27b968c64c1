// Command differential plays random programs on deployctl and on Pulumi's own engine, with the same language host, the
// same provider and the same cloud, and compares the states resource by resource after each update. It ends with 1 when
// they differ where they should not.
//
//	differential [-seeds 1-200] [-at-once 2] [-results DIR] [-shrink N] [-cli] [-kill-every PAUSE] [-states DIR]
//
// With -kill-every, deployctl's service is killed again and again while the programs are played.
//
// A seed is a program of several updates. Results are kept, so that an interrupted run can be resumed. It needs
// bin/deployctl and bin/stockengine, and pulumi-language-scenario and pulumi-resource-fake on PATH; `make differential`
// sees to that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/deployctl/deployctl/e2e/seeds"
)

// run says what is played, and how.
type run struct {
	from, to, atOnce, shrink int
	results, states          string
	cli                      bool // through the executables of both CLIs
	killEvery                time.Duration
}

func main() {
	span := flag.String("seeds", "1-200", "play these seeds, `FROM-TO`")
	var r run
	flag.IntVar(&r.atOnce, "at-once", 2, "how many programs are played at a time")
	flag.IntVar(&r.shrink, "shrink", 0, "make programs that differ smaller, with at most `N` tries each")
	flag.BoolVar(&r.cli, "cli", false, "play through the executables deployctl and pulumi")
	flag.DurationVar(&r.killEvery, "kill-every", 0, "kill deployctl's service after each `PAUSE`, and start it again")
	flag.StringVar(&r.results, "results", "bin/differential", "`DIR` where results are kept")
	flag.StringVar(&r.states, "states", "", "write the steps and states of every update into `DIR`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if r.from, r.to, err = seeds.Parse(*span); err == nil {
		err = r.main(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "differential:", err)
		os.Exit(1)
	}
}

// errDiffer is the error of a run that found a difference.
var errDiffer = errors.New("the engines differ")

func (r run) main(ctx context.Context) error {
	b, err := openBook(r.results, filepath.Join("bin", "deployctl"))
	if err != nil {
		return err
	}
	all, err := r.play(ctx, "bin", b)
	summary(all)
	if err == nil && slices.ContainsFunc(all, func(o outcome) bool { return o.Differs != "" }) {
		err = errDiffer
	}
	return err
}

// play plays the seeds that the book does not know yet, in an arena with the binaries of a directory.
func (r run) play(ctx context.Context, bin string, b *book) ([]outcome, error) {
	known, err := b.known()
	if err != nil {
		return nil, err
	}
	a, err := openArena(ctx, bin, r.states, r.cli)
	if err != nil {
		return nil, err
	}
	defer a.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if r.killEvery > 0 {
		a.service.killed = true
		k := startKiller(ctx, a.service, r.killEvery, cancel)
		defer func() { fmt.Printf("the service was killed %d times\n", k.end()) }()
	}
	var (
		mu      sync.Mutex
		all     []outcome
		players sync.WaitGroup
	)
	seeds := make(chan int)
	for range r.atOnce {
		players.Go(func() {
			for seed := range seeds {
				o, err := r.one(ctx, a, seed)
				if err == nil {
					err = b.add(o)
				}
				if err != nil {
					cancel(fmt.Errorf("seed %d: %w", seed, err))
				}
				mu.Lock()
				all = append(all, o)
				mu.Unlock()
			}
		})
	}
	for seed := r.from; seed <= r.to && ctx.Err() == nil; seed++ {
		if o, is := known[seed]; is {
			mu.Lock()
			all = append(all, o)
			mu.Unlock()
			continue
		}
		select {
		case seeds <- seed:
		case <-ctx.Done():
		}
	}
	close(seeds)
	players.Wait()
	return all, context.Cause(ctx)
}

// one plays a seed and makes its program smaller if the engines differ.
func (r run) one(ctx context.Context, a *arena, seed int) (outcome, error) {
	p, used := generate(seed)
	o, err := a.compare(ctx, p)
	if err != nil {
		return o, fmt.Errorf("%w\n%s", err, p.text())
	}
	o.Used = used
	if o.Differs != "" {
		if r.shrink > 0 {
			p, o.Differs = a.shrink(ctx, p, o.Differs, r.shrink)
		}
		o.Differs += "of\n" + p.text()
		fmt.Printf("seed %d: the engines differ %s\n", seed, o.Differs)
	}
	return o, nil
}

// summary prints what was played.
func summary(all []outcome) {
	used, rules := map[string]int{}, map[string]int{}
	updates, failed, differ := 0, 0, 0
	for _, o := range all {
		updates, failed = updates+o.Updates, failed+o.Failed
		if o.Differs != "" {
			differ++
		}
		for what := range o.Used {
			used[what]++
		}
		for rule := range o.Rules {
			rules[rule]++
		}
	}
	fmt.Printf("%d programs, %d updates, of which %d failed on both engines; %d programs differ\n", len(all), updates,
		failed, differ)
	for _, what := range slices.Sorted(maps.Keys(used)) {
		fmt.Printf("  %4d programs with %s\n", used[what], what)
	}
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		fmt.Printf("  %4d programs with the intended difference: %s\n", rules[rule], rule)
	}
}
