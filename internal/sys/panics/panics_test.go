package panics_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/sys/panics"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

type fragile struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (fragile) Check(
	_ context.Context, req *grpc_health_v1.HealthCheckRequest,
) (*grpc_health_v1.HealthCheckResponse, error) {
	if req.GetService() == "bad" {
		panic("of the secret kind")
	}
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

func (fragile) Watch(
	*grpc_health_v1.HealthCheckRequest, grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse],
) error {
	panic("of the secret kind")
}

func TestAPanicEndsItsCallOnly(t *testing.T) {
	var told []error
	client := serve(t, panics.ServerOptions(func(err error) { told = append(told, err) })...)
	_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "bad"})
	internal(t, err)
	stream, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	internal(t, err)
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
	if len(told) != 2 {
		t.Errorf("told %d panics: %v", len(told), told)
	}
}

func internal(t *testing.T, err error) {
	t.Helper()
	if status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "secret kind") {
		t.Errorf("the error quotes the panic: %v", err)
	}
}

func TestDoReturnsAPanicAsAnError(t *testing.T) {
	err := panics.Do("counting", func() error { panic(errors.New("x")) })
	var caught *panics.PanicError
	if !errors.As(err, &caught) || !strings.Contains(err.Error(), "while counting") {
		t.Errorf("got %v", err)
	}
	if err := panics.Do("counting", func() error { return nil }); err != nil {
		t.Errorf("got %v", err)
	}
}

func serve(t *testing.T, opts ...grpc.ServerOption) grpc_health_v1.HealthClient {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(opts...)
	grpc_health_v1.RegisterHealthServer(server, fragile{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return grpc_health_v1.NewHealthClient(conn)
}

func TestAPanicOfAGroupIsItsError(t *testing.T) {
	group, ctx := panics.NewGroup(t.Context(), "testing")
	group.Go(func() error { panic("broken") })
	group.Go(func() error {
		<-ctx.Done()
		return nil
	})
	if err := group.Wait(); !errors.As(err, new(*panics.PanicError)) {
		t.Errorf("it ends with %v", err)
	}
}
