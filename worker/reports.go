package worker

import (
	"context"
	"sync/atomic"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// reports tells whether Temporal has accepted the ends of activities. The SDK reports them after they have returned,
// and drops what is not accepted.
type reports struct {
	tell atomic.Pointer[func(token []byte, err error)] // nil until there is a worker
}

// to sets who is told, by the task token of an activity.
func (r *reports) to(tell func(token []byte, err error)) { r.tell.Store(&tell) }

// intercept is a grpc.UnaryClientInterceptor. The SDK repeats a report that has failed, so it comes by again.
func (r *reports) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, reply, conn, options...)
	tell := r.tell.Load()
	if tell == nil {
		return err
	}
	switch request := request.(type) {
	case *workflowservice.RespondActivityTaskCompletedRequest:
		(*tell)(request.GetTaskToken(), err)
	case *workflowservice.RespondActivityTaskFailedRequest:
		(*tell)(request.GetTaskToken(), err)
	}
	return err
}
