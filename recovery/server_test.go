package recovery

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"

	commonpb "go.temporal.io/api/common/v1"

	"github.com/deployctl/deployctl/statestore"
)

// frontend is as much of a Temporal server as a client asks before it does anything.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
}

func (*frontend) GetSystemInfo(
	context.Context, *workflowservice.GetSystemInfoRequest,
) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

// recoveryOn returns the recovery of a store, with a client of a server that listens on loopback.
func recoveryOn(t *testing.T, server workflowservice.WorkflowServiceServer, store *statestore.Store) *Recovery {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(s, server)
	t.Cleanup(s.Stop)
	go func() { _ = s.Serve(listener) }() // until it is stopped
	c, err := client.NewLazyClient(client.Options{HostPort: listener.Addr().String(), Namespace: "ours"})
	must(t, err)
	t.Cleanup(c.Close)
	return &Recovery{
		Client: c, Namespace: "ours", Store: store, Log: slog.New(slog.DiscardHandler),
		Data: converter.GetDefaultDataConverter(), Failures: temporal.GetDefaultFailureConverter(),
		Unbound: func(*commonpb.Payload) bool { return false },
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
