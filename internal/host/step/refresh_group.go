package step

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/host/ratelimit"
	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

var errNotBegun = errors.New("its group ends before it has its turn")

// refreshTurn waits until a refresh of a group may begin. The first one waits without a limit, so that every group
// reads something.
func (s *Steps) refreshTurn(ctx, turn context.Context, beats *heartbeat.Beats, i int) error {
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

// Refresh reads stored resources, and begins to do so for as long as the time of their group allows.
func (s *Steps) Refresh(
	ctx context.Context, beats *heartbeat.Beats, in deployments.RefreshInput, time time.Duration,
) (deployments.RefreshOutput, error) {
	turn, cancel := context.WithTimeoutCause(ctx, time, errNotBegun)
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
