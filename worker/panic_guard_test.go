package worker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

func TestAPanicFailsItsActivityAndOnlyThoseThatSaveAreRetried(t *testing.T) {
	for name, again := range map[string]bool{
		deployments.ActivityPlanResources: false, deployments.ActivitySettle: false, deployments.ActivityClaimStack: false,
		deployments.ActivitySave: true, deployments.ActivityCommitUpdate: true,
	} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.SetTestTimeout(waittest.Patience)
		env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&panicGuard{}}})
		env.RegisterActivityWithOptions(func(context.Context) error { panic("the secret is 42") },
			activity.RegisterOptions{Name: name})
		_, err := env.ExecuteActivity(name)
		var failure *temporal.ApplicationError
		if !errors.As(err, &failure) || failure.NonRetryable() == again ||
			!strings.Contains(err.Error(), "failed internally") ||
			strings.Contains(err.Error(), "the secret") {
			t.Errorf("%s ends with %v", name, err)
		}
	}
}
