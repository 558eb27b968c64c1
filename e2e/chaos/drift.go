package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
)

const (
	// perSecond is what the cloud takes from everybody together.
	perSecond = 40
	// interactive updates create so many resources each; they are played idle times alone and as often beside the looks
	// for drift.
	interactive, idle = 60, 7
	// fewIdle is how often they are played where times are not looked at.
	fewIdle = 2
	// mostDelay is how many times as long as alone one may take.
	mostDelay = 1.2
)

// drifting plays a seed of the drift: stacks that are looked at by schedule all at once, on an account that takes few
// calls, while somebody deploys. The first seed is of the full size.
func drifting(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*patience)
	defer cancel()
	stacks, resources := 100, 100
	if seed > 1 {
		stacks, resources = 8, 20
	}
	s, err := w.newStage(ctx, fmt.Sprintf("drift-%d-0", seed), "yaml",
		graph(rand.New(rand.NewPCG(uint64(seed), 9)), resources, auto))
	if err != nil {
		return o, err
	}
	defer s.close()
	all, err := s.siblings(ctx, stacks, seed)
	if err != nil {
		return o, err
	}
	drifted, err := s.meddle(ctx, max(1, stacks/10))
	if err != nil {
		return o, err
	}
	if err := s.cloud.Set(ctx, fakecloud.Fault{Name: "limit", Do: fakecloud.Fail, Status: http.StatusTooManyRequests,
		PerSecond: perSecond}); err != nil {
		return o, err
	}
	alone, err := w.deploy(ctx, s.cloud, seed, "alone")
	if err != nil {
		return o, err
	}
	api, err := w.dial()
	if err != nil {
		return o, err
	}
	defer func() { _ = api.Close() }()
	if err := each(all, func(t *stage) error { return t.looks(ctx, api) }); err != nil {
		return o, err
	}
	beside, err := w.deploy(ctx, s.cloud, seed, "beside")
	if err != nil {
		return o, err
	}
	o.Times = []float64{percentile(alone, 0.5), percentile(beside, 0.5), slices.Max(alone), beside[0],
		slices.Max(beside)}
	o.Tally = map[string]int{"stacks": stacks, "resources": stacks * resources, "drifted": len(drifted)}
	var mu sync.Mutex
	err = each(all, func(t *stage) error {
		found, running, err := t.looked(ctx, api)
		mu.Lock()
		defer mu.Unlock()
		o.Tally["found"] += found
		o.Tally["beside"] += running
		return err
	})
	if err == nil && o.Tally["found"] != len(drifted) {
		err = fmt.Errorf("%d resources were changed, and %d found", len(drifted), o.Tally["found"])
	}
	return o, err
}

// siblings brings the stage's program up for so many stacks, of which it is one, on its cloud.
func (s *stage) siblings(ctx context.Context, n, seed int) ([]*stage, error) {
	all := []*stage{s}
	for i := 1; i < n; i++ {
		t := *s
		t.stack = fmt.Sprintf("drift-%d-%d", seed, i)
		all = append(all, &t)
	}
	// They share a directory, which must not change while it is uploaded.
	if err := each(all[1:], func(t *stage) error { return t.init(ctx) }); err != nil {
		return nil, err
	}
	return all, each(all, func(t *stage) error {
		_, err := t.deployctl(ctx, "up", "--yes", "--skip-preview")
		return err
	})
}

// each does something with every stage, four at a time.
func each(all []*stage, do func(*stage) error) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	next := make(chan *stage)
	for range 4 {
		wg.Go(func() {
			for t := range next {
				if err := do(t); err != nil {
					mu.Lock()
					errs = append(errs, fmt.Errorf("%s: %w", t.stack, err))
					mu.Unlock()
				}
			}
		})
	}
	for _, t := range all {
		next <- t
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

// meddle changes so many objects from outside.
func (s *stage) meddle(ctx context.Context, n int) ([]fakecloud.Object, error) {
	objects, err := s.cloud.Objects(ctx, "")
	if err != nil {
		return nil, err
	}
	changed := objects[:min(n, len(objects))]
	for _, o := range changed {
		o.Properties["size"] = 99.0
		if err := s.cloud.Put(ctx, o); err != nil {
			return nil, err
		}
	}
	return slices.Clip(changed), nil
}

// deploy plays the interactive updates and gives how long each takes, in seconds.
func (w *world) deploy(
	ctx context.Context, cloud *fakecloud.Process, seed int, name string,
) (took []float64, err error) {
	times := idle
	if seed > 1 {
		times = fewIdle
	}
	for i := range times {
		s := &stage{world: w, dir: fmt.Sprintf("%s/%s-%d-%d", w.dir, name, seed, i),
			stack: fmt.Sprintf("%s-%d-%d", name, seed, i), cloud: cloud}
		if err := write(s.dir, project, "yaml", graph(rand.New(rand.NewPCG(uint64(i), 10)), interactive,
			auto)); err != nil {
			return nil, err
		}
		if err := s.init(ctx); err != nil {
			return nil, err
		}
		begin := time.Now()
		if _, err := s.deployctl(ctx, "up", "--yes", "--skip-preview"); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin).Seconds())
	}
	return took, nil
}

const lookName = "drift"

// looks makes a schedule that looks for drift, and has it look now.
func (s *stage) looks(ctx context.Context, api *client.Client) error {
	name := deployments.ScheduleName{StackName: s.name(), Name: lookName}
	if _, err := s.deployctl(ctx, "schedule", "new", "drift", "--every", "24h", "--name", lookName); err != nil {
		return err
	}
	return api.RunSchedule(ctx, name)
}

// looked waits until the look is over, which must have succeeded, and gives how many resources it found to have
// drifted, and whether it still ran when it was first asked about.
func (s *stage) looked(ctx context.Context, api *client.Client) (found, running int, err error) {
	name := deployments.ScheduleName{StackName: s.name(), Name: lookName}
	err = eventually(ctx, "the drift check is over", func() (bool, error) {
		runs, err := api.ScheduleRuns(ctx, name, 1)
		if err != nil || len(runs) == 0 || runs[0].Status == deployments.StatusRunning {
			running = 1
			return false, err
		}
		if found = runs[0].Drifted; runs[0].Status != deployments.StatusSucceeded {
			return false, fmt.Errorf("its drift check %s: %s", runs[0].Status, runs[0].Error)
		}
		return true, nil
	})
	return found, running, err
}

// driftingLine sums the drift up.
func driftingLine(all []outcome, whole bool) (string, []string) {
	sum, counts := totals(all)
	broken := counts.broken()
	text := ""
	for _, o := range all {
		if len(o.Times) < 5 {
			broken = append(broken, "it was not measured how long an update takes")
			continue
		}
		ratio := o.Times[1] / o.Times[0]
		text += fmt.Sprintf("; an interactive update, the middle one of %d, %.1f s alone and %.1f s beside, %.2f "+
			"times as long (at most %.1f); the longest one alone %.1f s, the first one beside %.1f s, the longest "+
			"one %.1f s",
			idle, o.Times[0], o.Times[1], ratio, mostDelay, o.Times[2], o.Times[3], o.Times[4])
		if ratio > mostDelay {
			broken = append(broken, "who waits is not let through first")
		}
	}
	if whole && sum["beside"] == 0 {
		broken = append(broken, "nobody looked while somebody deployed")
	}
	return fmt.Sprintf("%d stacks with %d resources looked at by schedule on an account that takes %d calls a "+
		"second, 0 errors, %d of %d drifted found%s",
		sum["stacks"], sum["resources"], perSecond, sum["found"], sum["drifted"], text), broken
}
