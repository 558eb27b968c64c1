package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
)

// waiting is an activity that waits for its end and tells the reason.
type waiting struct {
	interceptor.ActivityInboundInterceptorBase
	began chan struct{}
}

func (w *waiting) ExecuteActivity(ctx context.Context, _ *interceptor.ExecuteActivityInput) (any, error) {
	if w.began != nil {
		close(w.began)
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestAWorkerThatStopsInterruptsItsActivitiesAndFailsNone(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	w := &waiting{began: make(chan struct{})}
	go func() {
		<-w.began
		stop(worker.ErrWorkerShutdown)
	}()
	_, err := (&activityContexts{}).InterceptActivity(ctx, w).ExecuteActivity(ctx, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

func TestTheTimeOfAnActivityIsKept(t *testing.T) {
	ctx, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	if _, err := (&activityContexts{}).InterceptActivity(ctx, &waiting{}).ExecuteActivity(ctx, nil); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("it ends with %v", err)
	}
}
