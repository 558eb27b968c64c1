package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// The stacks that are compared, and what a history and a worker may come to.
const (
	manyResources, fewerResources = 10_000, 2_500

	mostEvents  = 10_240
	mostHistory = 10 << 20 // bytes
	mostWorker  = 1024     // MiB

	// A history that a slow step holds takes nothing new from heldEvents on, which heldResources are enough for, and
	// may come to mostHeld.
	heldEvents, heldResources, mostHeld = 40_000, 20_000, 51_200

	// A resource of many may take this many times what one of fewer takes.
	mostGrowth = 1.5
)

// sizing plays a seed of the sizes: the first compares stacks, the second has a step that outlasts others until a
// history is full.
func sizing(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*patience)
	defer cancel()
	if seed == 2 {
		return outlasting(ctx, w)
	}
	fewer, err := sized(ctx, w, fewerResources, sizedVerbs)
	if err != nil {
		return o, err
	}
	many, err := sized(ctx, w, manyResources, sizedVerbs)
	if err != nil {
		return o, err
	}
	o.Tally = many.tally
	for i, verb := range sizedVerbs {
		growth := many.seconds[i] / manyResources / (fewer.seconds[i] / fewerResources)
		o.Times = append(o.Times, many.seconds[i])
		if growth > mostGrowth && err == nil {
			err = fmt.Errorf("%s takes %.1f s of %d resources and %.1f s of %d: not linear",
				verb, fewer.seconds[i], fewerResources, many.seconds[i], manyResources)
		}
	}
	switch {
	case err != nil:
	case many.tally["events"] >= mostEvents || many.tally["bytes"] >= mostHistory:
		err = fmt.Errorf("a history has %d events and %d bytes", many.tally["events"], many.tally["bytes"])
	case many.tally["worker MiB"] >= mostWorker:
		err = fmt.Errorf("a worker takes %d MiB", many.tally["worker MiB"])
	}
	return o, err
}

// sizedVerbs are what a stack goes through.
var sizedVerbs = []string{"create", "no change", "destroy"}

type sizes struct {
	seconds []float64 // by sizedVerbs
	tally   map[string]int
}

// flat is n resources that depend on nothing.
func flat(n int) []node {
	nodes := make([]node, n)
	for i := range nodes {
		nodes[i] = node{Name: "r" + strconv.Itoa(i), Type: server, Properties: map[string]any{"size": 1},
			Needs: []string{}}
	}
	return nodes
}

// sized makes a stack of n resources go through the first of sizedVerbs, or all of them.
func sized(ctx context.Context, w *world, n int, verbs []string) (z sizes, err error) {
	s, err := w.newStage(ctx, fmt.Sprintf("size-%d", n), "nodejs", flat(n))
	if err != nil {
		return z, err
	}
	defer s.close()
	z.tally = map[string]int{"resources": n}
	for i, verb := range verbs {
		begin := time.Now()
		if _, err := s.deployctl(ctx, []string{"up", "up", "destroy"}[i], "--skip-preview", "--yes"); err != nil {
			return z, err
		}
		z.seconds = append(z.seconds, time.Since(begin).Seconds())
		objects, err := s.cloud.Objects(ctx, "")
		if want := []int{n, n, 0}[i]; err != nil || len(objects) != want {
			return z, fmt.Errorf("after %s the cloud has %d objects, not %d: %w", verb, len(objects), want, err)
		}
		if err := s.weigh(ctx, i+1, z.tally); err != nil {
			return z, err
		}
	}
	for _, worker := range s.Workers {
		z.tally["worker MiB"] = max(z.tally["worker MiB"], int(cluster.Peak(worker.PID())))
	}
	return z, nil
}

// weigh notes the largest of an update's histories.
func (s *stage) weigh(ctx context.Context, version int, tally map[string]int) error {
	u := s.update()
	u.Version = strconv.Itoa(version)
	for _, id := range []string{deployments.UpdateWorkflowID(u), deployments.RunWorkflowID(u)} {
		all, err := cluster.Histories(ctx, s.temporal, id)
		if err != nil {
			return err
		}
		for _, h := range all {
			tally["events"], tally["bytes"] = max(tally["events"], h.Events), max(tally["bytes"], h.Bytes)
			tally["histories"]++
		}
	}
	return nil
}

// outlasting creates a stack of which one resource takes until the history is full, and others have to wait for it.
func outlasting(ctx context.Context, w *world) (o outcome, err error) {
	s, err := w.newStage(ctx, "outlasting", "nodejs", flat(heldResources))
	if err != nil {
		return o, err
	}
	defer s.close()
	gate, err := s.cloud.SetGate(ctx, fakecloud.Fault{Name: "slow", Op: fakecloud.Create, Object: "r7",
		At: fakecloud.After})
	if err != nil {
		return o, err
	}
	up, err := s.start("up", "--yes", "--skip-preview", "--quiet")
	if err != nil {
		return o, err
	}
	if err := gate.Wait(ctx); err != nil {
		return o, err
	}
	before, err := s.filled(ctx, up)
	if err != nil {
		return o, err
	}
	if err := gate.Open(ctx); err != nil {
		return o, err
	}
	if err := up.wait(ctx); err != nil {
		return o, err
	}
	held := map[string]int{}
	if err := s.weigh(ctx, 1, held); err != nil {
		return o, err
	}
	o.Tally = map[string]int{"held events": held["events"], "held resources": heldResources,
		"waited": heldResources - len(before)}
	state, err := s.exported(ctx)
	switch {
	case err != nil:
	case len(state.Resources) != heldResources+2:
		err = fmt.Errorf("the state has %d resources", len(state.Resources))
	case len(before) >= heldResources:
		err = errors.New("nothing waited for the slow step")
	case held["histories"] < 3: // one of the Update, and more than one of the Run
		err = errors.New("a run with a full history did not continue as new after its slow step")
	case held["events"] >= mostHeld:
		err = fmt.Errorf("the largest history, which a step held, has %d events", held["events"])
	}
	return o, err
}

// filled waits until the history of a running update takes nothing new, and returns what the cloud has then.
func (s *stage) filled(ctx context.Context, up *command) (there []fakecloud.Object, err error) {
	err = eventually(ctx, "the history is full", func() (bool, error) {
		if up.over() {
			return false, up.wait(ctx)
		}
		run, err := s.temporal.DescribeWorkflowExecution(ctx, s.workflow("Run"), "")
		return err == nil && run.GetWorkflowExecutionInfo().GetHistoryLength() >= heldEvents, err
	})
	if err != nil {
		return nil, err
	}
	unchanged := 0 // listings in a row
	err = eventually(ctx, "the steps that had started have ended", func() (bool, error) {
		now, err := s.cloud.Objects(ctx, "")
		if unchanged++; len(now) != len(there) {
			unchanged = 0
		}
		there = now
		return unchanged == 30, err
	})
	return there, err
}

// sizingLine sums the sizes up.
func sizingLine(all []outcome, _ bool) (string, []string) {
	sum, _ := totals(all)
	text := fmt.Sprintf("%d resources", sum["resources"])
	for _, o := range all {
		for i, seconds := range o.Times {
			text += fmt.Sprintf(", %s %.0f s", sizedVerbs[i], seconds)
		}
	}
	return text + fmt.Sprintf("; the largest of %d histories %d events and %.1f MiB, a worker %d MiB; of %d "+
		"resources, %d waited for a step that held a history until it had %d events",
		sum["histories"], sum["events"], float64(sum["bytes"])/(1<<20), sum["worker MiB"], sum["held resources"],
		sum["waited"], sum["held events"]), nil
}
