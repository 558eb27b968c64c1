package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/e2e/fakecloud"
)

const (
	// perStack is how many updates of a seed are cancelled, one after another.
	perStack = 10
	// soon is within what a provider must be asked to give up.
	soon = time.Second
)

// The two ways to cancel.
const (
	graceful = "gracefully"
	byForce  = "by force"
)

// cancels are when an update is cancelled: while a create is held before or after its effect, or as soon as it is
// accepted.
var cancels = []string{string(fakecloud.Before), string(fakecloud.After), "at once"}

// cancelling plays a seed of the cancels: every update goes on where the one before was cancelled, and the last is let
// finish.
func cancelling(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v := variants()[seed%len(variants())]
	plain, err := v.undisturbed(ctx, w)
	if err != nil {
		return o, fmt.Errorf("undisturbed: %w", err)
	}
	s, err := w.newStage(ctx, fmt.Sprintf("cancel-%d", seed), v.language, v.nodes)
	if err != nil {
		return o, err
	}
	defer s.close()
	api, err := w.dial()
	if err != nil {
		return o, err
	}
	defer func() { _ = api.Close() }()
	r := rand.New(rand.NewPCG(uint64(seed), 3))
	o.Tally = map[string]int{}
	left := 0 // pending operations
	for i := range perStack {
		c := cancelled{stage: s, api: api, nth: i + 1, moment: cancels[r.IntN(len(cancels))], forced: (seed+i)%2 == 0}
		before := left
		if left, err = c.play(ctx, 1+r.IntN(6), &o); err == nil && left > before && !c.forced {
			err = fmt.Errorf("it leaves %d operations pending more", left-before)
		}
		if o.Tally["pending "+c.how()] += max(0, left-before); err != nil {
			return o, fmt.Errorf("update %d, cancelled %s %s: %w", c.nth, c.how(), c.moment, err)
		}
	}
	if _, err := s.deployctl(ctx, "up", "--yes", "--skip-preview", "--on-unknown", "fail"); err != nil {
		return o, err
	}
	end, err := s.reached(ctx)
	o.Counts = end.counts
	return o, errors.Join(err, end.differs(plain))
}

// cancelled is one update that is cancelled.
type cancelled struct {
	*stage
	api    *client.Client
	nth    int // of the stack's updates
	moment string
	forced bool
}

func (c cancelled) how() string {
	if c.forced {
		return byForce
	}
	return graceful
}

// play begins the update, cancels it at its moment, at the create after so many, and gives how many operations are
// pending then.
func (c cancelled) play(ctx context.Context, create int, o *outcome) (pending int, err error) {
	open, held := func() error { return nil }, func(context.Context) error { return nil }
	if c.moment != "at once" {
		g, err := c.cloud.SetGate(ctx, fakecloud.Fault{
			Name: fmt.Sprintf("update-%d", c.nth), Op: fakecloud.Create, At: fakecloud.Moment(c.moment),
			Skip: create - 1, Times: 1,
		})
		if err != nil {
			return 0, err
		}
		open, held = func() error { return g.Open(ctx) }, g.Wait
	}
	// Few steps at a time: what the cancelled updates let finish leaves something to the last one.
	up, err := c.start("up", "--yes", "--skip-preview", "--on-unknown", "fail", "--parallel", "8")
	if err != nil {
		return 0, err
	}
	if err := errors.Join(c.accepted(ctx, c.api, c.version(c.nth)), held(ctx)); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := c.api.Cancel(ctx, c.version(c.nth), c.forced); err != nil {
		return 0, err
	}
	if c.forced && c.moment != "at once" {
		took, err := c.told(ctx, begin)
		if err != nil {
			return 0, err
		}
		o.Times = append(o.Times, took.Seconds())
	} else if err := open(); err != nil { // who was let finish, finishes
		return 0, err
	}
	if err := up.endedWith(ctx, 3); err != nil {
		return 0, err
	}
	if err := open(); err != nil {
		return 0, err
	}
	o.Tally[c.how()+" "+c.moment]++
	return c.pendingOperations(ctx, c.api)
}

// told waits until the provider was asked to give up, and gives how long that took.
func (c cancelled) told(ctx context.Context, since time.Time) (took time.Duration, err error) {
	err = eventually(ctx, "the provider is asked to give up", func() (bool, error) {
		requests, err := c.cloud.Requests(ctx)
		i := slices.IndexFunc(requests, func(r fakecloud.Request) bool {
			return r.Op == fakecloud.Cancel &&
				r.Time.After(since)
		})
		if i >= 0 {
			took = requests[i].Time.Sub(since)
		}
		return i >= 0, err
	})
	return took, err
}

// cancellingLine sums the cancels up.
func cancellingLine(all []outcome, whole bool) (string, []string) {
	var (
		sum    counts
		times  []float64
		tally  = map[string]int{}
		broken []string
	)
	for _, o := range all {
		sum = sum.plus(o.Counts)
		times = append(times, o.Times...)
		for what, n := range o.Tally {
			tally[what] += n
		}
	}
	by := map[string]int{}
	for _, how := range []string{graceful, byForce} {
		for _, moment := range cancels {
			n := tally[how+" "+moment]
			if by[how] += n; whole && n == 0 {
				broken = append(broken, fmt.Sprintf("never cancelled: %s %s", how, moment))
			}
		}
	}
	p95 := percentile(times, 0.95)
	if p95 > soon.Seconds() {
		broken = append(broken, fmt.Sprintf("a provider is asked after %.2f s", p95))
	}
	if sum != (counts{}) {
		broken = append(broken, "something was made twice, was left over, or had to be typed")
	}
	return fmt.Sprintf("%d cancels, %d gracefully with %d pending operations left, %d by force with %d, all settled "+
		"by the next update, "+
		"%d duplicates, %d leaks, the provider asked after p50 %.2f s, p95 %.2f s (at most %.0f)",
		by[graceful]+by[byForce],
		by[graceful], tally["pending "+graceful], by[byForce], tally["pending "+byForce], sum.Duplicates, sum.Leaks,
		percentile(times, 0.5), p95, soon.Seconds()), broken
}
