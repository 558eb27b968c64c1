package worker

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"golang.org/x/time/rate"

	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/session"
	"github.com/deployctl/deployctl/internal/sys/share"
)

// How many activities of a queue a worker carries out at a time, all in all and of one organization. It may have a few
// whatever others do, for which slots are kept.
const (
	mostOfOrganization  = session.MostOfOrganization
	mostActivities      = 2 * mostOfOrganization
	leastOfOrganization = 64
	slotsOfQueue        = mostActivities + 32*leastOfOrganization
)

// longestPostponed is the longest pause before an activity asks for its place again.
const longestPostponed = 15 * time.Second

// shares divide the slots of a task queue among organizations, because an activity keeps its slot for as long as the
// provider that it calls likes: the fairness of Temporal's queues is about what waits. An activity beyond the share of
// its organization is postponed before anything of it is done. One whose attempts are numbered, such as the only one
// of a program, has its place in any case: activities.ClaimStack limits how many of those there are, and of steps.
type shares struct {
	interceptor.WorkerInterceptorBase
	places *share.Places
	log    *slog.Logger
	told   *rate.Limiter
}

func newShares(log *slog.Logger) *shares {
	return &shares{
		places: share.NewPlaces(share.Limits{All: mostActivities, OfOne: mostOfOrganization, Least: leastOfOrganization}),
		log:    log, told: rate.NewLimiter(rate.Every(time.Minute), 1),
	}
}

// InterceptActivity has an activity take a place of its organization.
func (s *shares) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &sharedActivity{interceptor.ActivityInboundInterceptorBase{Next: next}, s}
}

type sharedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	shares *shares
}

// ExecuteActivity carries out an activity, or postpones it.
func (s *sharedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	if info.IsLocalActivity {
		return s.Next.ExecuteActivity(ctx, in)
	}
	organization := organizationOf(info.WorkflowExecution.ID)
	leave, ok := s.shares.places.Take(organization)
	defer leave()
	if once := info.RetryPolicy != nil && info.RetryPolicy.MaximumAttempts > 0; !ok && !once {
		if s.shares.told.Allow() {
			s.shares.log.Warn("An organization has its share of the activities of this worker; more of them wait.",
				"organization", organization, "queue", info.TaskQueue)
		}
		return nil, failure.Later(ctx, "its organization has its share of the activities of the worker",
			longestPostponed)
	}
	return s.Next.ExecuteActivity(ctx, in)
}

// organizationOf returns the organization of a workflow; each is named KIND/ORGANIZATION/...
func organizationOf(workflow string) string {
	_, of, _ := strings.Cut(workflow, "/")
	organization, _, _ := strings.Cut(of, "/")
	return organization
}
