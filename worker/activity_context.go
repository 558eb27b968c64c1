package worker

import (
	"context"

	"go.temporal.io/sdk/interceptor"
)

// contexts gives every activity a context that just ends when the SDK ends it, without the SDK's reason for that, such
// as that the worker stops: to those who wait in it, all reasons are an interruption.
type contexts struct {
	interceptor.WorkerInterceptorBase
}

func (*contexts) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &plainContext{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type plainContext struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity runs an activity.
func (p *plainContext) ExecuteActivity(given context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
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
