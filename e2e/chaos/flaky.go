package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

const (
	// overloaded and throttled are the shares of all requests that the flaky cloud answers 503 and 429.
	overloaded, throttled = 0.05, 0.02
	// operations are how many creates and deletes a seed makes, answer how long the cloud takes for each: of clouds, a
	// fast one. With much less, what is measured is whether a few in a row are told to wait for a second, which no
	// order of steps makes up for.
	operations = 1000
	answer     = 500 * time.Millisecond
	// slowdown is how much longer an update may take there than where nothing fails.
	slowdown = 1.5
)

// measuring is held by the seed that plays: others beside it would be measured, too.
var measuring sync.Mutex

// flaking plays a seed of the flaky cloud: the same program lives and dies twice in the same world, once where nothing
// fails.
func flaking(ctx context.Context, w *world, seed int) (o outcome, err error) {
	measuring.Lock()
	defer measuring.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p := life{
		seed: seed, language: []string{"yaml", "nodejs"}[seed%2],
		nodes: graph(rand.New(rand.NewPCG(uint64(seed), 2)), operations/2, named, auto, server),
	}
	var clean, flaky lived
	play := []func() error{
		func() (err error) { clean, err = w.live(ctx, p, "clean"); return err },
		func() (err error) {
			flaky, err = w.live(ctx, p, "flaky",
				fakecloud.Fault{Name: "overloaded", Do: fakecloud.Fail, Status: http.StatusServiceUnavailable,
					RetryAfter: 1, Chance: overloaded, Seed: uint64(seed)},
				fakecloud.Fault{Name: "throttled", Do: fakecloud.Fail, Status: http.StatusTooManyRequests,
					Chance: throttled, Seed: uint64(seed)})
			return err
		},
	}
	first := seed / 2 % 2 // neither always finds the world warmed up
	if err := play[first](); err != nil {
		return o, err
	}
	if err := play[1-first](); err != nil {
		return o, err
	}
	o.Times = []float64{clean.took.Seconds(), flaky.took.Seconds()}
	o.Counts, o.Tally = flaky.counts, flaky.answers
	if o.Tally["clean 503"] = clean.answers["503"]; clean.answers["503"]+clean.answers["429"] > 0 {
		return o, errors.New("the clean cloud was not")
	}
	return o, flaky.differs(clean.reached)
}

// life is a program from its creation to its end.
type life struct {
	seed     int
	language string
	nodes    []node
}

// lived is what a life came to.
type lived struct {
	reached // when all was created
	took    time.Duration
	answers map[string]int // requests, and those of them that were answered 503 and 429
}

// live creates and destroys all of a program on a cloud with faults.
func (w *world) live(ctx context.Context, p life, name string, faults ...fakecloud.Fault) (l lived, err error) {
	s, err := w.newStage(ctx, fmt.Sprintf("%s-%d", name, p.seed), p.language, p.nodes)
	if err != nil {
		return l, err
	}
	defer s.close()
	if _, err := s.deployctl(ctx, "preview"); err != nil { // what the program needs is installed
		return l, err
	}
	for _, op := range []fakecloud.Op{fakecloud.Create, fakecloud.Delete} {
		faults = append(faults, fakecloud.Fault{Name: "slow " + string(op), Do: fakecloud.Delay, Op: op,
			DelayMS: int(answer.Milliseconds())})
	}
	for _, f := range faults {
		if err := s.cloud.Set(ctx, f); err != nil {
			return l, err
		}
	}
	timed := func(args ...string) error {
		begin := time.Now()
		_, err := s.deployctl(ctx, append(args, "--yes", "--skip-preview")...)
		l.took += time.Since(begin)
		return err
	}
	if err := timed("up"); err != nil {
		return l, err
	}
	if l.reached, err = s.reached(ctx); err != nil {
		return l, err
	}
	if err := timed("destroy"); err != nil {
		return l, err
	}
	left, err := s.cloud.Objects(ctx, "")
	if err != nil {
		return l, err
	}
	l.Leaks += len(left)
	requests, err := s.cloud.Requests(ctx)
	l.answers = map[string]int{}
	for _, r := range requests {
		switch l.answers["requests"]++; {
		case r.Status == http.StatusServiceUnavailable, r.Status == http.StatusTooManyRequests:
			l.answers[fmt.Sprint(r.Status)]++
		case r.Op == fakecloud.Create, r.Op == fakecloud.Delete:
			l.answers["operations"]++
		}
	}
	return l, err
}

// flakingLine sums the flaky cloud up.
func flakingLine(all []outcome, whole bool) (string, []string) {
	var (
		sum         counts
		tally       = map[string]int{}
		longer      []float64
		broken      []string
		clean, took float64
	)
	for _, o := range all {
		sum = sum.plus(o.Counts)
		for what, n := range o.Tally {
			tally[what] += n
		}
		if len(o.Times) == 2 {
			clean, took = clean+o.Times[0], took+o.Times[1]
			longer = append(longer, o.Times[1]/o.Times[0])
		}
	}
	if worst := percentile(longer, 1); worst > slowdown {
		broken = append(broken, fmt.Sprintf("one took %.2f times as long", worst))
	}
	if sum != (counts{}) {
		broken = append(broken, "something was made twice, was left over, or had to be typed")
	}
	if whole && (tally["operations"] < operations*len(all) || tally["503"] == 0 || tally["429"] == 0) {
		broken = append(broken, "the cloud was not flaky enough")
	}
	return fmt.Sprintf("%d of %d runs succeeded, %d operations by %d requests of which %d were answered 503 and %d "+
		"429, %d duplicates, %d leaks, "+
		"%.2f times the clean wall time, p50 %.2f, worst %.2f (at most %.1f)", len(longer), len(all),
		tally["operations"], tally["requests"],
		tally["503"], tally["429"], sum.Duplicates, sum.Leaks, took/max(clean, 1), percentile(longer, 0.5),
		percentile(longer, 1), slowdown), broken
}
