package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
)

// slowToKnow is a cluster that knows new search attributes only after a time, and counts who asks.
type slowToKnow struct {
	workflowservice.WorkflowServiceClient
	knows time.Time
	calls int
}

// connected is a client of it.
type connected struct {
	client.Client
	service *slowToKnow
}

func (c connected) WorkflowService() workflowservice.WorkflowServiceClient { return c.service }

func (s *slowToKnow) CountWorkflowExecutions(
	context.Context, *workflowservice.CountWorkflowExecutionsRequest, ...grpc.CallOption,
) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	if s.calls++; time.Now().Before(s.knows) {
		return nil, serviceerror.NewInvalidArgument("invalid search attribute")
	}
	return &workflowservice.CountWorkflowExecutionsResponse{}, nil
}

// Temporal admits ten searches a second for all processes of a namespace, unless it is told otherwise.
func TestNewSearchAttributesAreAwaitedWithFewCallsAndNotForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for takes, known := range map[time.Duration]bool{10 * time.Second: true, time.Minute: false} {
			began := time.Now()
			s := &slowToKnow{knows: began.Add(takes)}
			c := &Connection{Client: connected{service: s}, config: Config{Patience: 30 * time.Second}}
			err := c.awaitAttributes(t.Context())
			if took := time.Since(began); (err == nil) != known || took > 15*time.Second || s.calls > 12 {
				t.Errorf("known after %s: %d calls, %v after %s", takes, s.calls, err, took)
			}
		}
	})
}
