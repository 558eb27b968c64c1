package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/host/ratelimit"
	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

// groupTime is how long a group of refreshes goes on beginning to read. What is not begun then is left to a later
// group, so that people see the results of slow reads.
const groupTime = 10 * time.Second

var errNotBegun = errors.New("its group ends before it has its turn")

// Refresh reads stored resources and reports how the real resources differ from the state. It has no effect, so it may
// run any number of times. Its result has the refreshes that succeeded, and names those that it did not begin. The
// others are repeated by Step, which knows retries, rate limits and a cancel of one.
func (a *Activities) Refresh(ctx context.Context, in deployments.RefreshInput) (deployments.RefreshOutput, error) {
	s, err := a.hosted(ctx, in.Update, in.Base)
	if err != nil {
		return deployments.RefreshOutput{}, failure.Of(err)
	}
	beats := heartbeat.Start(ctx, a.Heart)
	defer beats.Stop()
	turn, cancel := context.WithTimeoutCause(ctx, a.groupTime, errNotBegun)
	defer cancel()

	var out deployments.RefreshOutput
	results := make([]engine.StepFinished, len(in.Steps))
	read := func(i int) {
		// After a panic there is no result, so Step repeats the refresh and reports it.
		_ = panics.Do("refreshing "+string(in.Steps[i].URN), func() error {
			ctx, release := intake.WithHold(ctx)
			defer release()
			at := &attempt{session: s, step: in.Steps[i], heartbeat: beats, turn: true}
			result, err := at.guarded(ctx)
			if err == nil && hadEffect(result) {
				at.redactResult(ctx, &result)
				results[i] = result
			}
			return err
		})
	}
	var reading sync.WaitGroup
	next := make(chan int) // to goroutines that have read before: their stacks have grown
	for i := range in.Steps {
		if err := s.refreshTurn(ctx, turn, beats, i); errors.Is(err, errNotBegun) {
			for _, left := range in.Steps[i:] {
				out.NotBegun = append(out.NotBegun, left.Op)
			}
			break
		} else if err != nil {
			break
		}
		select {
		case next <- i:
		default:
			reading.Go(func() {
				read(i)
				for i := range next {
					read(i)
				}
			})
		}
	}
	close(next)
	reading.Wait()
	if ctx.Err() != nil { // the errors of the reads are caused by the end of the context
		return deployments.RefreshOutput{}, ctx.Err()
	}
	for _, result := range results {
		if result.Outcome != "" {
			out.Done = append(out.Done, result)
		}
	}
	return out, nil
}

// refreshTurn waits until a refresh of a group may begin. The first one waits without a limit, so that every group
// reads something.
func (s *session) refreshTurn(ctx, turn context.Context, beats *heartbeat.Beats, i int) error {
	for i == 0 {
		err := s.parallel.Acquire(ctx, beats.Cancelled())
		if postponed := (*ratelimit.Postponed)(nil); !errors.As(err, &postponed) {
			return err
		}
	}
	if turn.Err() != nil {
		return context.Cause(turn)
	}
	return s.parallel.Acquire(turn, beats.Cancelled())
}
