package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/deployctl/deployctl/engine"
	"go.temporal.io/sdk/temporal"
)

// fewSteps is up to how many steps at a time none is issued ahead: who asks for few wants to see them one by one.
const fewSteps = 4

// ahead is how many steps the core issues beyond those that may run, so that the next begins here when one ends, and
// not after the round trip through the core.
func ahead(parallel int) int {
	if parallel <= fewSteps {
		return 0
	}
	return parallel / 2
}

// turns are how many steps of an update may run at a time. Steps that were issued ahead wait for theirs.
type turns chan struct{}

func newTurns(g engine.Goal) turns { return make(turns, g.Parallel) }

// longestWait bounds a wait for a turn: it counts towards the step's timeout, which has a minute to spare.
const longestWait = 20 * time.Second

// take waits for a turn, which give ends. A wait that is too long is begun again by another attempt, and one that is
// cancelled had no effect.
func (t turns) take(ctx context.Context, cancelled <-chan struct{}) error {
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	select {
	case t <- struct{}{}:
		return nil
	case <-cancelled:
		return temporal.NewCanceledError()
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return postponed(fmt.Sprintf("it waits for its turn: %d steps run at a time", cap(t)), time.Millisecond)
	}
}

func (t turns) give() { <-t }
