package worker

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

// panicGuard turns a panic of an activity into an error. A retry would panic again, so the error is non-retryable,
// except for activities that store what was done: their retries wait for a worker of another build.
type panicGuard struct {
	interceptor.WorkerInterceptorBase
}

// keeping are the activities whose inputs are stored nowhere else.
var keeping = map[string]bool{
	deployments.ActivitySave: true, deployments.ActivityCommitUpdate: true, deployments.ActivitySpillPart: true,
	deployments.ActivityRecoverUpdate: true,
}

// InterceptActivity guards an activity.
func (*panicGuard) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &guardedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type guardedActivity struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity runs an activity.
func (g *guardedActivity) ExecuteActivity(
	ctx context.Context, in *interceptor.ExecuteActivityInput,
) (result any, err error) {
	name := activity.GetInfo(ctx).ActivityType.Name
	err = panics.Do("carrying out the activity "+name, func() (err error) {
		result, err = g.Next.ExecuteActivity(ctx, in)
		return err
	})
	if defect := (*panics.PanicError)(nil); errors.As(err, &defect) {
		return nil, temporal.NewApplicationErrorWithOptions(defect.Error(), string(deployments.CodeInternal),
			temporal.ApplicationErrorOptions{
				NonRetryable: !keeping[deployments.PresentName(name)],
			})
	}
	return result, err
}
