package workflows

import (
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"go.temporal.io/sdk/testsuite"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

func TestAResolutionIsRejectedUnlessTheRunWaitsForIt(t *testing.T) {
	const thing = "urn:pulumi:dev::shop::fake:index:Thing::"
	w, p := newWorld(), &program{names: names(2)}
	w.settled, w.away = engine.OutcomeUndecidable, 6
	w.outcomes["thing-a"] = func(n int) error {
		if n == 1 {
			return errUnknown
		}
		return nil
	}
	var refused []string
	accepted := 0
	say := func(env *testsuite.TestWorkflowEnvironment, id, name string) {
		env.UpdateWorkflow(deployments.UpdateResolve, id, &testsuite.TestUpdateCallback{
			OnReject: func(err error) { refused = append(refused, err.Error()) },
			OnAccept: func() { accepted++ },
			OnComplete: func(_ any, err error) {
				if err != nil {
					t.Error(err)
				}
			},
		}, engine.Resolved{URN: urn.URN(thing + name)})
	}
	out, _ := perform(t, w, p, deployments.RunInput{Goal: engine.Goal{WaitOnUnknown: true}},
		func(env *testsuite.TestWorkflowEnvironment) {
			env.RegisterDelayedCallback(func() {
				say(env, "1", "thing-b")
				say(env, "2", "thing-a")
			}, 3*time.Second)
		})
	if out.Result.Status != engine.StatusSucceeded || accepted != 1 || len(refused) != 1 ||
		!strings.Contains(refused[0], thing+"thing-a") {
		t.Errorf("came to %+v; accepted %d, refused %q", out.Result, accepted, refused)
	}
	wantSnapshot(t, w, names(2))
}
