package metrics

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// Unary counts unary calls of the API.
func (m *Metrics) Unary(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	begun := time.Now()
	resp, err := handle(ctx, req)
	m.callSeconds.WithLabelValues(edgeGRPC, info.FullMethod).Observe(time.Since(begun).Seconds())
	m.calls.WithLabelValues(edgeGRPC, info.FullMethod, status.Code(err).String()).Inc()
	return resp, err
}

// Stream counts streaming calls of the API. A Watch is as long as its update, so they are not timed.
func (m *Metrics) Stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	err := handle(srv, s)
	m.calls.WithLabelValues(edgeGRPC, info.FullMethod, status.Code(err).String()).Inc()
	return err
}

// Pulumi counts calls of the Pulumi Service API, by the method and the path of their route, and the status of the
// answer.
func (m *Metrics) Pulumi(route string, status int, took time.Duration) {
	m.callSeconds.WithLabelValues(edgePulumi, route).Observe(took.Seconds())
	m.calls.WithLabelValues(edgePulumi, route, strconv.Itoa(status)).Inc()
}
