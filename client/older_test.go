package client_test

import (
	"context"
	"maps"
	"testing"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// older is a service that lacks the newer methods, and answers them as gRPC does.
type older struct{ *memory.Service }

func (older) ChangeTags(context.Context, deployments.StackName, map[string]string, []string) error {
	return status.Error(codes.Unimplemented, "unknown method ChangeTags")
}

func (older) Statuses(
	context.Context, deployments.Caller, deployments.StatusQuery,
) (deployments.StatusPage, error) {
	return deployments.StatusPage{}, status.Error(codes.Unimplemented, "unknown method ListStatuses")
}

func TestAnOlderServiceChangesTagsAndListsStacks(t *testing.T) {
	c := newEdge(t, older{memory.New()}).dial(client.Options{})
	if err := c.CreateStack(t.Context(), dev, map[string]string{"kept": "1", "gone": "2"}); err != nil {
		t.Fatal(err)
	}
	if err := c.ChangeTags(t.Context(), dev, map[string]string{"set": "3"}, []string{"gone"}); err != nil {
		t.Fatal(err)
	}
	page, err := c.Statuses(t.Context(), deployments.Caller{}, deployments.StatusQuery{Organization: dev.Organization})
	if err != nil || len(page.Stacks) != 1 || page.Incomplete == "" || page.Next != "" {
		t.Fatalf("the page is %+v, %v", page, err)
	}
	if st := page.Stacks[0]; st.Stack != dev || !maps.Equal(st.Tags, map[string]string{"kept": "1", "set": "3"}) {
		t.Errorf("the stack is %+v", st)
	}
}
