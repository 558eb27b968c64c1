package workflows

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// storedThings returns the states of n resources.
func storedThings(n int) []engine.State {
	out := make([]engine.State, n)
	for i := range out {
		name := fmt.Sprintf("thing-%d", i)
		out[i] = engine.State{
			Key: engine.Key(fmt.Sprint(i + 1)), URN: urn.New("dev", "shop", "", theType, name), Type: theType,
			Custom: true, ID: "id-" + name,
		}
	}
	return out
}

func TestRefreshesAreMadeInGroups(t *testing.T) {
	const resources = refreshItems*2 + 10
	failing := func(int) error { return nil } // it is read by Step alone
	for name, c := range map[string]struct {
		outcomes map[string]func(int) error
		err      error
		notBegun int // how many the first large group leaves
		groups   []int
		steps    []string
	}{
		"all are read by groups": {groups: []int{refreshItems, refreshItems, 10}},
		"those that a group could not read are read one by one": {
			outcomes: map[string]func(int) error{"thing-3": failing, "thing-60": failing},
			groups:   []int{refreshItems, refreshItems, 10}, steps: []string{"thing-3", "thing-60"},
		},
		"those that a group did not begin come into groups again": {
			notBegun: 100, groups: []int{refreshItems, refreshItems, 100, 10},
		},
		"a group that fails is read one by one": {
			err:    temporal.NewNonRetryableApplicationError("no", "Unexpected", nil),
			groups: []int{refreshItems, refreshItems, 10}, steps: nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.base, w.refreshing, w.notBegun = storedThings(resources), c.err, c.notBegun
			maps.Copy(w.outcomes, c.outcomes)
			out, _ := perform(t, w, nil, deployments.RunInput{
				Base: 1, Goal: engine.Goal{Kind: engine.KindRefresh, ReadAhead: resources},
			}, nil)
			if out.Result.Status != engine.StatusSucceeded || out.Result.Changes["same"] != resources {
				t.Errorf("came to %+v", out.Result)
			}
			slices.Sort(w.groups)
			slices.Reverse(w.groups)
			if !slices.Equal(w.groups, c.groups) {
				t.Errorf("groups of %v, want %v", w.groups, c.groups)
			}
			if steps := slices.Sorted(maps.Keys(w.calls)); c.err == nil && !slices.Equal(steps, c.steps) ||
				c.err != nil && len(steps) != resources {
				t.Errorf("read one by one: %v, want %v", steps, c.steps)
			}
		})
	}
}

func TestAForcedCancelEndsGroupsOfRefreshesThatWaitForAWorker(t *testing.T) {
	w := newWorld()
	w.base = storedThings(refreshItems)
	w.dead["first"], w.dead["second"] = true, true
	out, _ := perform(t, w, nil, deployments.RunInput{
		Base: 1, Goal: engine.Goal{Kind: engine.KindRefresh, ReadAhead: refreshItems},
	}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow(deployments.SignalCancel, engine.Cancelled{Forced: true})
		}, time.Second)
	})
	if out.Result.Status != engine.StatusCancelled || len(w.calls)+len(w.groups) != 0 {
		t.Errorf("came to %+v, and read %v", out.Result, w.calls)
	}
}

func TestARefreshThatWasNotReadWhenTheUpdateWasCancelledIsNotIssuedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		cancel   engine.Cancelled
		ended    []int // without having been read
		repeated int
	}{
		"cancelled": {engine.Cancelled{}, []int{3}, 1},
		"forced":    {engine.Cancelled{Forced: true}, []int{2, 3}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment()
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				r := &run{core: engine.New(engine.Goal{Kind: engine.KindRefresh}, nil, nil)}
				r.core.Handle(c.cancel)
				result, settable := workflow.NewFuture(ctx)
				settable.SetValue(deployments.RefreshOutput{
					Done: []engine.StepFinished{{Op: 1, Outcome: engine.OutcomeDone}}, NotBegun: []int{3},
				})
				var ended []int
				for _, e := range r.refreshCall([]engine.Step{{Op: 1}, {Op: 2}, {Op: 3}}).events(ctx, result) {
					if f, ok := e.(engine.StepFinished); ok && f.Outcome == engine.OutcomeCancelled {
						ended = append(ended, f.Op)
					}
				}
				if !slices.Equal(ended, c.ended) || len(r.notRefreshed) != c.repeated || len(r.toRefresh) != 0 {
					t.Errorf("%v ended, %d are repeated, %d come into groups", ended, len(r.notRefreshed), len(r.toRefresh))
				}
				return nil
			})
			if err := env.GetWorkflowError(); err != nil {
				t.Error(err)
			}
		})
	}
}
