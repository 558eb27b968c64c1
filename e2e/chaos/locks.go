package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
)

const (
	// promptly is within what the next update must be accepted, whatever became of the one that holds the lock.
	promptly = 5 * time.Second
	// few are the resources of a program here.
	few = 30
)

// way is a way to kill the holder of a stack's lock.
type way struct {
	kill func(ctx context.Context, s *stage, up *command) error
	// code is how the holder's command ends. A holder that lives is waited for, and whoever waits is told of it.
	code  int
	lives bool
}

// ways are all of them; those of workflows are what the Web UI offers.
var ways = map[string]way{
	"Stack terminated":  {terminate(deployments.StackWorkflowID), 0, true},
	"Stack cancelled":   {cancelWorkflow(deployments.StackWorkflowID), 0, true},
	"Update terminated": {terminate(deployments.UpdateWorkflowID), 1, false},
	"Update cancelled":  {cancelWorkflow(deployments.UpdateWorkflowID), 3, true},
	"Run terminated":    {terminate(deployments.RunWorkflowID), 1, false},
	"Run cancelled":     {cancelWorkflow(deployments.RunWorkflowID), 3, true},
	"worker killed": {func(ctx context.Context, s *stage, _ *command) error {
		w, err := s.hosting()
		if err != nil {
			return err
		}
		return errors.Join(w.Kill(), w.Start())
	}, 0, true},
	"client killed": {func(_ context.Context, _ *stage, up *command) error { return up.cmd.Process.Kill() }, -1, true},
}

// terminate terminates the first update's workflow that of names.
func terminate[N deployments.StackName | deployments.UpdateName](
	of func(N) string,
) func(context.Context, *stage, *command) error {
	return func(ctx context.Context, s *stage, _ *command) error {
		return s.temporal.TerminateWorkflow(ctx, workflowOf(s, of), "", "by hand")
	}
}

// cancelWorkflow asks that workflow to cancel.
func cancelWorkflow[N deployments.StackName | deployments.UpdateName](
	of func(N) string,
) func(context.Context, *stage, *command) error {
	return func(ctx context.Context, s *stage, _ *command) error {
		return s.temporal.CancelWorkflow(ctx, workflowOf(s, of), "")
	}
}

func workflowOf[N deployments.StackName | deployments.UpdateName](s *stage, of func(N) string) string {
	switch of := any(of).(type) {
	case func(deployments.UpdateName) string:
		return of(s.update())
	case func(deployments.StackName) string:
		return of(s.name())
	}
	return ""
}

// told is what a command says that waits for the first update.
var told = regexp.MustCompile(`waiting for update 1 of \S+, running since \d\d:\d\d:\d\d; position 1`)

// locking plays a seed of the locks: the holder of a stack's lock is killed while a create is held, the next update
// comes, and then a crowd. Nobody unlocks anything.
func locking(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := rand.New(rand.NewPCG(uint64(seed), 4))
	s, err := w.newStage(ctx, fmt.Sprintf("locks-%d", seed), []string{"yaml", "nodejs"}[seed%2],
		graph(r, few, named, auto))
	if err != nil {
		return o, err
	}
	defer s.close()
	api, err := w.dial()
	if err != nil {
		return o, err
	}
	defer func() { _ = api.Close() }()
	name := slices.Sorted(maps.Keys(ways))[seed%len(ways)]
	took, err := s.dethrone(ctx, api, ways[name], 1+r.IntN(few/2),
		[]fakecloud.Moment{fakecloud.Before, fakecloud.After}[r.IntN(2)])
	if err != nil {
		return o, fmt.Errorf("%s: %w", name, err)
	}
	o.Kills = []killed{{Moment: "in a create", Victim: name, Recovery: took.Seconds()}}
	end, err := s.reached(ctx)
	if err != nil {
		return o, err
	}
	o.Counts = end.counts
	if pending, err := s.pendingOperations(ctx, api); err != nil || pending > 0 || len(end.cloud) != few {
		return o, errors.Join(err, fmt.Errorf("%s: %d operations are pending, and of %d objects there are %d", name,
			pending, few, len(end.cloud)))
	}
	mode := slices.Sorted(maps.Keys(crowds))[seed%len(crowds)]
	if err := s.crowd(ctx, api, crowds[mode]); err != nil {
		return o, fmt.Errorf("%d clients at once, %s: %w", crowdSize, mode, err)
	}
	o.Tally = map[string]int{mode: crowdSize}
	return o, nil
}

// dethrone kills the first update while a create is held, and gives how long the second took to be accepted.
func (s *stage) dethrone(
	ctx context.Context, api *client.Client, how way, create int, at fakecloud.Moment,
) (took time.Duration, err error) {
	up, err := s.start("up", "--yes", "--skip-preview", "--on-unknown", "fail")
	if err != nil {
		return 0, err
	}
	open, err := s.gate(ctx, create, at)
	if err != nil {
		return 0, err
	}
	if err := how.kill(ctx, s, up); err != nil {
		return 0, err
	}
	begin := time.Now()
	next, err := s.start("up", "--yes", "--skip-preview", "--on-unknown", "fail")
	if err != nil {
		return 0, err
	}
	if err := s.accepted(ctx, api, s.version(2)); err != nil {
		return 0, fmt.Errorf("%w; it says\n%s", err, next.end())
	}
	took = time.Since(begin)
	if how.lives {
		err := eventually(ctx, "who waits is told for whom", func() (bool, error) {
			return told.MatchString(next.end()),
				nil
		})
		if err != nil {
			return 0, fmt.Errorf("%w; it says\n%s", err, next.end())
		}
	}
	if err := errors.Join(open(), up.endedWith(ctx, how.code), next.wait(ctx)); err != nil {
		return 0, err
	}
	return took, nil
}

// lockingLine sums the locks up.
func lockingLine(all []outcome, whole bool) (string, []string) {
	var (
		sum    counts
		times  []float64
		killed = map[string]int{}
		tally  = map[string]int{}
		broken []string
	)
	for _, o := range all {
		sum = sum.plus(o.Counts)
		for _, k := range o.Kills {
			killed[k.Victim]++
			times = append(times, k.Recovery)
		}
		for what, n := range o.Tally {
			tally[what] += n
		}
	}
	if whole {
		for name := range ways {
			if killed[name] == 0 {
				broken = append(broken, "never killed: "+name)
			}
		}
		for mode := range crowds {
			if tally[mode] == 0 {
				broken = append(broken, "no crowd came: "+mode)
			}
		}
	}
	slices.Sort(broken)
	worst := percentile(times, 1)
	if worst > promptly.Seconds() {
		broken = append(broken, fmt.Sprintf("the next update is accepted after %.1f s", worst))
	}
	if sum != (counts{}) {
		broken = append(broken, "something was made twice, was left over, or had to be typed")
	}
	return fmt.Sprintf("%d kills of the holder in %d ways, the next update accepted within p50 %.1f s, worst %.1f s "+
		"(at most %.0f), %d crowds of %d clients, "+
		"%d duplicates, %d leaks, %d times unlocked by hand", len(times), len(killed), percentile(times, 0.5), worst,
		promptly.Seconds(),
		total(tally)/crowdSize, crowdSize, sum.Duplicates, sum.Leaks, sum.Commands), broken
}

func total(tally map[string]int) (n int) {
	for _, m := range tally {
		n += m
	}
	return n
}
