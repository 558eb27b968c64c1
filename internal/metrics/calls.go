package metrics

import (
	"context"
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
	m.callSeconds.WithLabelValues(info.FullMethod).Observe(time.Since(begun).Seconds())
	m.calls.WithLabelValues(info.FullMethod, status.Code(err).String()).Inc()
	return resp, err
}

// Stream counts streaming calls of the API. A Watch is as long as its update, so they are not timed.
func (m *Metrics) Stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	err := handle(srv, s)
	m.calls.WithLabelValues(info.FullMethod, status.Code(err).String()).Inc()
	return err
}
