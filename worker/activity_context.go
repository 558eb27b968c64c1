package worker

import (
	"context"

	"go.temporal.io/sdk/interceptor"
)

// activityContexts gives every activity a context without the SDK's reason for its end, such as that the worker stops:
// for the code that waits in it, every reason is an interruption.
type activityContexts struct {
	interceptor.WorkerInterceptorBase
}

func (*activityContexts) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &bareContext{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type bareContext struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity runs an activity.
func (p *bareContext) ExecuteActivity(given context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	ctx := context.WithoutCancel(given)
	if deadline, ok := given.Deadline(); ok {
		limited, stop := context.WithDeadline(ctx, deadline)
		defer stop()
		ctx = limited
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(given, end)()
	return p.Next.ExecuteActivity(ctx, in)
}
